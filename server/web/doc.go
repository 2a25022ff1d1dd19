// Package web is the chat page: plain HTML, CSS and JavaScript modules, carried
// in the binary. There is no build step, and the page asks nothing of any other
// host.
//
// The page speaks the API of package server, and nothing else. What it shows is
// built from elements, never from markup, and the browser is told to enforce it
// (see Policy): text of users, documents and models cannot become code.
//
// assets/main.js is the file to begin with.
package web
