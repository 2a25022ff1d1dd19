// Package lora is the embedded clarifier: a fine-tuned LoRA adapter with small
// heads on the in-process encoder. One adapter serves both gates.
//
// A case is read as segments, each a sequence of its own: the dialogue with
// the question, and each passage with the question. The lower layers of the
// encoder read each segment alone; the top layers read all of them together, so
// that passages are compared with each other and with the dialogue. Gate 1
// reads the dialogue's segment alone.
//
// On top of the hidden states stand heads that mark words (the answer in a
// passage, the condition under which it holds, the words of the dialogue that
// settle a case or are unclear), judge passages (does it answer, is its answer
// still possible), pairs of passages (do they answer differently, and is it
// open which holds), and each gate as a whole. The decision is a logistic
// regression over what was read and a few plain comparisons of words; its
// output is the probability that asking is right. The options of a
// clarification are the passages in conflict, named by what sets their headings
// or conditions apart.
//
// training/ holds the scripts that made the adapter in adapter/, and their
// figures.
package lora
