package console

func (s *Server) dlqRoutes() {}
