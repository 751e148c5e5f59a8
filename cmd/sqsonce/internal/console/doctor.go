package console

func (s *Server) doctorRoutes() {}
