package server

func (s *Server) registerPreview() {}
