// Package documents reads the files of a folder into documents that can be cut
// into passages: Markdown, plain text, HTML, PDF, CSV and TSV, JSON and JSONL,
// and DOCX.
//
// A file that cannot be read is reported with the reason, and the rest goes
// on. Whatever the encoding of a file, all text that leaves this package is
// valid UTF-8 with "\n" line ends, so the same words give the same passages.
package documents
