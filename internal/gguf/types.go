package gguf

import (
	"encoding/binary"
	"fmt"
	"math"

	"github.com/askback/askback/internal/safetensors"
)

// Type is how a tensor's numbers are stored, by the format's own number.
type Type uint32

// The types that can be read and written.
const (
	F32  Type = 0
	F16  Type = 1
	Q8_0 Type = 8  // blocks of 32 numbers, a byte each, with a scale
	BF16 Type = 30 // read only
)

const block = 32 // numbers in a block of Q8_0

// others are types that are known by name alone.
var others = map[Type]string{2: "q4_0", 3: "q4_1", 6: "q5_0", 7: "q5_1", 10: "q2_k", 11: "q3_k", 12: "q4_k", 13: "q5_k", 14: "q6_k", 15: "q8_k", 39: "mxfp4"}

// String gives the type's name, such as q8_0.
func (t Type) String() string {
	switch t {
	case F32:
		return "f32"
	case F16:
		return "f16"
	case Q8_0:
		return "q8_0"
	case BF16:
		return "bf16"
	}
	if name, ok := others[t]; ok {
		return name
	}
	return fmt.Sprintf("type %d", uint32(t))
}

// ParseType reads the name of a type that can be written.
func ParseType(name string) (Type, error) {
	for _, t := range []Type{F32, F16, Q8_0} {
		if t.String() == name {
			return t, nil
		}
	}
	return 0, fmt.Errorf("%q is no type that weights can be written in; take q8_0, f16 or f32", name)
}

// size gives the bytes of n numbers of a row, or false if the type cannot be
// read or cannot hold that many.
func (t Type) size(n int) (int, bool) {
	switch t {
	case F32:
		return 4 * n, true
	case F16, BF16:
		return 2 * n, true
	case Q8_0:
		return n / block * (block + 2), n%block == 0
	}
	return 0, false
}

// decode widens stored numbers; data is as long as dst needs.
func (t Type) decode(dst []float32, data []byte) {
	switch t {
	case F32:
		for i := range dst {
			dst[i] = math.Float32frombits(binary.LittleEndian.Uint32(data[4*i:]))
		}
	case F16:
		for i := range dst {
			dst[i] = safetensors.FromHalf(binary.LittleEndian.Uint16(data[2*i:]))
		}
	case BF16:
		for i := range dst {
			dst[i] = math.Float32frombits(uint32(binary.LittleEndian.Uint16(data[2*i:])) << 16)
		}
	case Q8_0:
		for i := 0; i < len(dst); i += block {
			scale := safetensors.FromHalf(binary.LittleEndian.Uint16(data))
			for j := range block {
				dst[i+j] = scale * float32(int8(data[2+j]))
			}
			data = data[2+block:]
		}
	}
}

// encode appends numbers as they are stored. Numbers that 16 bits cannot hold
// are an error, as is what is no number.
func (t Type) encode(data []byte, src []float32) ([]byte, error) {
	for _, x := range src {
		if x-x != 0 { // infinite, or not a number
			return nil, fmt.Errorf("it holds %v", x)
		}
	}
	switch t {
	case F32:
		for _, x := range src {
			data = binary.LittleEndian.AppendUint32(data, math.Float32bits(x))
		}
	case F16:
		for _, x := range src {
			h := half(x)
			if h&0x7fff == 0x7c00 {
				return nil, fmt.Errorf("it holds %v, which is too large for f16", x)
			}
			data = binary.LittleEndian.AppendUint16(data, h)
		}
	case Q8_0:
		for i := 0; i < len(src); i += block {
			var most float32
			for _, x := range src[i : i+block] {
				most = max(most, x, -x)
			}
			scale, inverse := most/127, float32(0)
			if scale != 0 {
				inverse = 1 / scale
			}
			h := half(scale)
			if h == 0x7c00 {
				return nil, fmt.Errorf("it holds %v, which is too large for q8_0", most)
			}
			data = binary.LittleEndian.AppendUint16(data, h)
			for _, x := range src[i : i+block] {
				data = append(data, byte(int8(math.Round(float64(x*inverse)))))
			}
		}
	default:
		return nil, fmt.Errorf("%s cannot be written", t)
	}
	return data, nil
}

// half rounds to the nearest half-precision number, ties to even; what is too
// large becomes infinite.
func half(x float32) uint16 {
	bits := math.Float32bits(x)
	sign := uint16(bits >> 16 & 0x8000)
	magnitude := bits & 0x7fffffff
	switch {
	case magnitude >= 0x477ff000: // 65520, half way beyond the largest
		return sign | 0x7c00
	case magnitude < 0x38800000: // subnormal: a multiple of 2^-24
		return sign | uint16(math.RoundToEven(float64(math.Float32frombits(magnitude))*(1<<24)))
	}
	magnitude += 0xfff + magnitude>>13&1
	return sign | uint16((magnitude-0x38000000)>>13)
}
