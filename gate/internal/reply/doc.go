// Package reply is what the clarifiers that ask a language model have in
// common: how a request's texts are made safe and short enough for a prompt
// (Text), how the model's reply is read (Read), and what verdict it makes
// (Verdict).
package reply
