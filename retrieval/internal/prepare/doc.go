// Package prepare holds what every index does with documents, passages and
// questions before it stores them or searches: it checks them, cuts them into
// words and identifiers (terms.go, passage.go, query.go), and scales vectors
// (vector.go). Indexes that share it rank alike.
package prepare
