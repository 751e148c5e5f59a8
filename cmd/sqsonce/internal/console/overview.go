package console

func (s *Server) overviewRoutes() {}
