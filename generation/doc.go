// Package generation writes grounded answers with citations, or says that the
// passages do not hold the answer.
//
// Extractive is the embedded default; Model uses any langchaingo model.
package generation
