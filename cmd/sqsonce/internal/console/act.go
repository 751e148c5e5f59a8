package console

func (s *Server) actRoutes() {}
