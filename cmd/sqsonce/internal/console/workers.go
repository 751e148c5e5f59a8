package console

func (s *Server) workersRoutes() {}
