package openai_test

import (
	"context"
	"encoding/json"
	"errors"
	"os"
	"os/exec"
	"reflect"
	"strings"
	"testing"

	official "github.com/openai/openai-go/v3"
	"github.com/openai/openai-go/v3/option"
	"github.com/tmc/langchaingo/llms"
	langchain "github.com/tmc/langchaingo/llms/openai"

	"github.com/askback/askback/conversation"
	"github.com/askback/askback/server/openai"
)

// TestGoClient talks with OpenAI's official client for Go.
func TestGoClient(t *testing.T) {
	s := serve(t, conversation.NewMemory(), openai.Options{Log: quiet})
	s.quoter.Use(conversation.Usage{Input: 120, Output: 8})
	client := official.NewClient(option.WithBaseURL(s.URL+"/v1"), option.WithAPIKey("none"), option.WithMaxRetries(0))
	models, err := client.Models.List(t.Context())
	if err != nil || len(models.Data) != 1 || models.Data[0].ID != "askback" {
		t.Fatalf("models %+v, %v", models, err)
	}
	if m, err := client.Models.Get(t.Context(), "askback"); err != nil || m.OwnedBy != "askback" {
		t.Errorf("the model: %+v, %v", m, err)
	}
	params := official.ChatCompletionNewParams{Model: "askback", Temperature: official.Float(0.7),
		Messages: []official.ChatCompletionMessageParamUnion{official.SystemMessage("You are a pirate."), official.UserMessage(deposit)}}
	first, err := client.Chat.Completions.New(t.Context(), params)
	if err != nil {
		t.Fatal(err)
	}
	message := first.Choices[0].Message
	var about openai.Extension
	if err := json.Unmarshal([]byte(message.JSON.ExtraFields["askback"].Raw()), &about); err != nil || about.Kind != conversation.KindClarification || len(about.Options) != 2 {
		t.Errorf("the extension: %+v, %v", about, err)
	}
	if message.Content != asks || first.Choices[0].FinishReason != "stop" || first.JSON.Usage.Valid() { // no model was asked
		t.Errorf("the first reply: %s", first.RawJSON())
	}

	params.Messages = append(params.Messages, message.ToParam(), official.UserMessage("the second"))
	params.StreamOptions.IncludeUsage = official.Bool(true)
	stream := client.Chat.Completions.NewStreaming(t.Context(), params)
	var all official.ChatCompletionAccumulator
	var last string
	for stream.Next() {
		chunk := stream.Current()
		if !all.AddChunk(chunk) {
			t.Fatalf("the chunk does not fit: %s", chunk.RawJSON())
		}
		if len(chunk.Choices) > 0 && chunk.Choices[0].FinishReason != "" {
			last = chunk.Choices[0].Delta.JSON.ExtraFields["askback"].Raw()
		}
	}
	if err := stream.Err(); err != nil || all.Choices[0].Message.Content != cargo || all.Choices[0].FinishReason != "stop" || all.Usage.PromptTokens != 120 || all.Usage.CompletionTokens != 8 || all.Usage.TotalTokens != 128 {
		t.Errorf("the stream: %+v, %v", all, err)
	}
	if err := json.Unmarshal([]byte(last), &about); err != nil || about.Kind != conversation.KindAnswer || about.Citations[0].Quote != "The deposit is 450." {
		t.Errorf("the extension of the last chunk: %s, %v", last, err)
	}

	// A click in a named conversation.
	named := official.ChatCompletionNewParams{Model: "askback", Messages: []official.ChatCompletionMessageParamUnion{official.UserMessage(deposit)}}
	named.SetExtraFields(map[string]any{"askback": openai.Ask{Conversation: "go"}})
	if _, err := client.Chat.Completions.New(t.Context(), named); err != nil {
		t.Fatal(err)
	}
	named.Messages[0] = official.UserMessage("City")
	named.SetExtraFields(map[string]any{"askback": openai.Ask{Conversation: "go", Choice: "1", Clarification: "c1"}})
	if c, err := client.Chat.Completions.New(t.Context(), named); err != nil || c.Choices[0].Message.Content != city {
		t.Errorf("the click: %+v, %v", c, err)
	}

	params.N = official.Int(2)
	var refused *official.Error
	if _, err := client.Chat.Completions.New(t.Context(), params); !errors.As(err, &refused) || refused.StatusCode != 400 || refused.Param != "n" || refused.Type != "invalid_request_error" {
		t.Errorf("n of 2: %v", err)
	}
	s.quoter.Between = func(context.Context) error { return errors.New("the model fell over") }
	stream = client.Chat.Completions.NewStreaming(t.Context(), official.ChatCompletionNewParams{Model: "askback", Messages: []official.ChatCompletionMessageParamUnion{official.UserMessage(open)}})
	for stream.Next() {
	}
	if err := stream.Err(); err == nil || !strings.Contains(err.Error(), "fell over") {
		t.Errorf("a stream that fails: %v", err)
	}
}

// TestLangchain talks with langchaingo's client.
func TestLangchain(t *testing.T) {
	s := serve(t, conversation.NewMemory(), openai.Options{Log: quiet})
	used := conversation.Usage{Input: 120, Output: 8}
	s.quoter.Use(used)
	llm, err := langchain.New(langchain.WithBaseURL(s.URL+"/v1"), langchain.WithToken("none"), langchain.WithModel("askback"))
	if err != nil {
		t.Fatal(err)
	}
	dialogue := []llms.MessageContent{llms.TextParts(llms.ChatMessageTypeSystem, "You are a pirate."), llms.TextParts(llms.ChatMessageTypeHuman, deposit)}
	r, err := llm.GenerateContent(t.Context(), dialogue, llms.WithTemperature(0.2), llms.WithMaxTokens(100))
	if err != nil || r.Choices[0].Content != asks || r.Choices[0].StopReason != "stop" {
		t.Fatalf("the first reply: %+v, %v", r, err)
	}
	dialogue = append(dialogue, llms.TextParts(llms.ChatMessageTypeAI, r.Choices[0].Content), llms.TextParts(llms.ChatMessageTypeHuman, "the second"))
	streamed := ""
	r, err = llm.GenerateContent(t.Context(), dialogue, llms.WithStreamingFunc(func(_ context.Context, chunk []byte) error {
		streamed += string(chunk)
		return nil
	}))
	if err != nil || streamed != cargo || r.Choices[0].Content != cargo || r.Choices[0].StopReason != "stop" || conversation.UsageOf(r.Choices[0].GenerationInfo) != used {
		t.Errorf("streamed %q, %+v, %v", streamed, r, err)
	}
}

// TestPythonClient talks with OpenAI's official client for Python.
func TestPythonClient(t *testing.T) {
	python := os.Getenv("ASKBACK_OPENAI_PYTHON")
	if python == "" {
		made, err := exec.CommandContext(t.Context(), "../../internal/qdranttest/setup", "openai-client", "testdata/python/requirements.txt").Output()
		if err != nil {
			t.Fatalf("making the environment of the Python client: %v", err)
		}
		python = strings.TrimSpace(string(made))
	}
	s := serve(t, conversation.NewMemory(), openai.Options{Log: quiet})
	s.quoter.Use(conversation.Usage{Input: 120, Output: 8})
	client := exec.CommandContext(t.Context(), python, "testdata/python/client.py", s.URL)
	client.Stderr = os.Stderr
	data, err := client.Output()
	if err != nil {
		t.Fatal(err)
	}
	var got map[string]any
	if err := json.Unmarshal(data, &got); err != nil {
		t.Fatal(err)
	}
	want := map[string]any{
		"models": []any{"askback"}, "model": "askback",
		"asks": asks, "kind": "clarification", "options": []any{"City", "Cargo"}, "finish": "stop", "no_usage": true,
		"streamed": cargo, "usage": []any{120.0, 8.0, 128.0}, "whole_usage": []any{120.0, 8.0, 128.0}, "streamed_finish": "stop", "streamed_kind": "answer",
		"clicked":   "The deposit is 200. [1]",
		"refused_n": "BadRequestError unsupported_value n", "refused_model": "NotFoundError model_not_found model",
		"refused_image": "BadRequestError unsupported_value messages.[0].content.[0]",
	}
	if !reflect.DeepEqual(got, want) {
		t.Errorf("got  %v\nwant %v", got, want)
	}
}
