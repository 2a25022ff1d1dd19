package server

func (s *Server) registerConversations() {}
