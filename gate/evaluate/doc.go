// Package evaluate measures a clarifier on labelled cases: how often it is
// right at each gate, and above all how often it asks when the question was
// clear.
package evaluate
