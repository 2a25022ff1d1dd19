// Package generation writes grounded answers with citations, or says that the
// passages do not hold the answer.
//
// Extractive is the embedded default. It cuts the passages into sentences,
// list items and table rows, scores each against the question (nearness of
// meaning, shared words by rarity, the kind of thing that is asked for, the
// headings it stands under), and says the few that answer, whole and in the
// words of the passage, with what they lean on and what limits them. A code
// that the question names must stand with what is said.
//
// Model uses any langchaingo model, whose citations are checked; AsModel is the
// other direction.
//
// Text of passages is data. Sentences in it that give orders to an assistant
// are not quoted and not shown to a model, and nothing that a terminal would
// take for a command leaves the package. generatortest holds the suite that
// every Generator passes.
package generation
