package server

// Documents are what is answered from, where they can be looked at and changed.
type Documents interface{}

func (s *Server) registerDocuments() {}
