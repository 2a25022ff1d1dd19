package tenant

import (
	"context"
	"errors"
)

// ErrNone says that it is not known whose the work is.
var ErrNone = errors.New("it is not said for which tenant this is; nothing is looked at")

type key struct{}

// With says whose work is done with the context.
func With(ctx context.Context, name string) context.Context {
	return context.WithValue(ctx, key{}, name)
}

// Of is whose work it is, "" if nobody's in particular.
func Of(ctx context.Context) string {
	name, _ := ctx.Value(key{}).(string)
	return name
}

// needed is whose work it is, or ErrNone.
func needed(ctx context.Context) (string, error) {
	name := Of(ctx)
	if name == "" {
		return "", ErrNone
	}
	return name, nil
}
