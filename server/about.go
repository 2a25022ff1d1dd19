package server

// About is what the page tells about the server.
type About struct{}

func (s *Server) registerAbout() {}
