// Package documents reads files of many formats and encodings into structured
// documents, ready to be chunked.
package documents
