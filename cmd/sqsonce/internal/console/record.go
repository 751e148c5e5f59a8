package console

func (s *Server) recordRoutes() {}
