package registry

import (
	"errors"
	"sync/atomic"

	"google.golang.org/grpc/encoding"
	grpcproto "google.golang.org/grpc/encoding/proto"
	"google.golang.org/grpc/mem"
	"google.golang.org/protobuf/encoding/protowire"
)

// sparing is the usual codec, but counts the parts of an answer before it makes a message of them. The
// messages of the API repeat nothing below their first level, so that this level is all that can be many.
type sparing struct {
	fields  int
	refused *atomic.Bool
}

var errCrowded = errors.New("the answer has too many parts")

// Name implements encoding.CodecV2.
func (s *sparing) Name() string { return grpcproto.Name }

// Marshal implements encoding.CodecV2.
func (s *sparing) Marshal(v any) (mem.BufferSlice, error) {
	return encoding.GetCodecV2(grpcproto.Name).Marshal(v)
}

// Unmarshal implements encoding.CodecV2.
func (s *sparing) Unmarshal(data mem.BufferSlice, v any) error {
	whole := data.MaterializeToBuffer(mem.DefaultBufferPool())
	defer whole.Free()
	rest := whole.ReadOnlyData()
	for n := 0; len(rest) > 0; n++ {
		if n == s.fields {
			s.refused.Store(true)
			return errCrowded
		}
		_, _, size := protowire.ConsumeField(rest)
		if size < 0 {
			return protowire.ParseError(size)
		}
		rest = rest[size:]
	}
	return encoding.GetCodecV2(grpcproto.Name).Unmarshal(mem.BufferSlice{whole}, v)
}
