// Package gate decides whether a turn asks back or goes on.
//
// A Clarifier reads the dialogue (gate 1, before retrieval) or the dialogue and
// the passages (gate 2, after retrieval) and says how likely it is that
// answering without asking would be a guess, and what it would ask. A Policy
// turns that into a decision: thresholds, budgets, time limits. A Cascade lets a
// costly clarifier see only what a cheap one is unsure of.
//
// Clarifiers stand in sub-packages: gate/lora is the embedded, fine-tuned one.
package gate
