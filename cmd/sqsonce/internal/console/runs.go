package console

func (s *Server) runsRoutes() {}
