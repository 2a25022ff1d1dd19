package conversation

import (
	"context"
	"testing"
)

func opts(texts ...string) []Option {
	var os []Option
	for i, t := range texts {
		os = append(os, Option{ID: string(rune('1' + i)), Text: t})
	}
	return os
}

func TestFoldRules(t *testing.T) {
	deposit := Pending{Question: "What is the deposit?", Text: "Is it for a compact car or a van?", Options: opts("compact cars", "vans"), Gate: "post"}
	bikes := Pending{Question: "What is the deposit?", Text: "City 2 or Cargo 2?", Options: opts("City 2", "Cargo 2"), Gate: "post"}
	three := Pending{Question: "which plan has calls included", Text: "Which plan are you on: Basic, Plus or Pro?", Options: opts("Basic", "Plus", "Pro")}
	refund := Pending{Question: "how long does it take?", Text: "What do you mean: the refund or the delivery?", Gate: "pre", Unclear: []string{"it"}}
	member := Pending{Question: "is the deposit kept?", Text: "Are you a member of an alpine club?", Options: opts("member of an alpine club", "not a member")}
	opened := Pending{Question: "Can it go back?", Text: "Was the box opened?", Options: opts("opened", "still sealed")}
	hall := Pending{Question: "what's wrong with it?", Text: "What do you see at the hall?"}
	hut := Pending{Question: "do I get my money back?", Text: "What did you book: a pitch or hut nights?", Options: opts("campsite pitch", "hut nights")}
	for _, c := range []struct {
		p        Pending
		reply    string
		kind     ReplyKind
		question string
	}{
		{deposit, "compact", ReplyChoice, "What is the deposit for compact cars?"},
		{deposit, "the second one", ReplyChoice, "What is the deposit for vans?"},
		{deposit, "b", ReplyChoice, "What is the deposit for vans?"},
		{deposit, "B)", ReplyChoice, "What is the deposit for vans?"},
		{deposit, "#2", ReplyChoice, "What is the deposit for vans?"},
		{bikes, "2", ReplyChoice, "What is the deposit for Cargo 2?"},
		{bikes, "2 please", ReplyChoice, "What is the deposit for Cargo 2?"},
		{bikes, "5", ReplyUnclear, "What is the deposit?"},
		{deposit, "just answer please", ReplyJustAnswer, "What is the deposit?"},
		{deposit, "compact, no wait, the van", ReplyChoice, "What is the deposit for vans?"},
		{deposit, "both please", ReplyAll, "What is the deposit for compact cars and vans?"},
		{deposit, "compact, for three days", ReplyChoice, "What is the deposit? (compact cars; for three days)"},
		{deposit, "neither", ReplyNone, "What is the deposit? (not: compact cars, vans)"},
		{deposit, "something else: a motorbike", ReplyNone, "What is the deposit? (a motorbike)"},
		{deposit, "what's the guest Wi-Fi password?", ReplyNewQuestion, "what's the guest Wi-Fi password?"},
		{deposit, "no idea", ReplyDontKnow, "What is the deposit?"},
		{deposit, "just answer", ReplyJustAnswer, "What is the deposit?"},
		{deposit, "never mind", ReplyCancel, "What is the deposit?"},
		{deposit, "what do you mean by compact?", ReplyExplain, "What is the deposit?"},
		{deposit, "actually, how do I cancel my order?", ReplyNewQuestion, "actually, how do I cancel my order?"},
		{deposit, "yes", ReplyUnclear, "What is the deposit?"},
		{deposit, "", ReplyUnclear, "What is the deposit?"},
		{deposit, "the one for students?", ReplyDetail, "What is the deposit? (the one for students)"},
		{three, "is it the pro plan?", ReplyChoice, "which plan has calls included (Pro)"},
		{three, "the last one, I suppose", ReplyChoice, "which plan has calls included (Pro)"},
		{three, "the first two", ReplySeveral, "which plan has calls included (Basic and Plus)"},
		{three, "1 and 3", ReplySeveral, "which plan has calls included (Basic and Pro)"},
		{three, "not the first", ReplyNone, "which plan has calls included (not: Basic)"},
		{member, "yes", ReplyChoice, "is the deposit kept? (member of an alpine club)"},
		{member, "no", ReplyChoice, "is the deposit kept? (not a member)"},
		{member, "I'm not a member", ReplyChoice, "is the deposit kept? (not a member)"},
		{member, "yes, since 2019", ReplyChoice, "is the deposit kept? (member of an alpine club; since 2019)"},
		{opened, "yes", ReplyChoice, "Can it go back? (opened)"},
		{opened, "no!", ReplyChoice, "Can it go back? (still sealed)"},
		{hut, "I've done 13 nights with Orlane Hotels. How many more do I need for silver?", ReplyNewQuestion, "I've done 13 nights with Orlane Hotels. How many more do I need for silver?"},
		{hut, "Breakfast is in the price, no?", ReplyDetail, "do I get my money back? (Breakfast is in the price)"},
		{hut, "I want rid of it. How?", ReplyNewQuestion, "I want rid of it. How?"},
		{hall, "no music, and a light that wasn't on before", ReplyDetail, "what's wrong with it? (no music, and a light that wasn't on before)"},
		{hall, "this year, in May", ReplyDetail, "what's wrong with it? (this year, in May)"},
		{hall, "yes, since Monday. what do I do", ReplyDetail, "what's wrong with it? (since Monday. what do I do)"},
		{refund, "the refund", ReplyDetail, "how long does the refund take?"},
		{refund, "I meant the refund, please", ReplyDetail, "how long does the refund take?"},
	} {
		got, err := Fold(context.Background(), c.p, c.reply, nil)
		if err != nil {
			t.Fatal(err)
		}
		if got.Kind != c.kind || got.Question != c.question {
			t.Errorf("%q to %q\n got %s %q (%s) %q\nwant %s %q", c.reply, c.p.Text, got.Kind, got.Question, got.Rule, got.Say, c.kind, c.question)
		}
	}
}
