// Stands in for miniaudio, which Ollama's C++ names but Go's module archives
// leave out (it lies in a folder called vendor). Reading audio is refused.
#pragma once
#include <cstddef>
#include <cstdint>

typedef int ma_result;
typedef uint64_t ma_uint64;
enum { MA_SUCCESS = 0, MA_NOT_IMPLEMENTED = -29 };
typedef enum { ma_format_f32 = 5 } ma_format;
typedef enum { ma_encoding_format_wav = 1 } ma_encoding_format;
struct ma_decoder_config { int unused; };
struct ma_decoder { int unused; };
struct ma_encoder_config { int unused; };
struct ma_encoder { int unused; };

static inline ma_decoder_config ma_decoder_config_init(ma_format, uint32_t, uint32_t) { return {0}; }
static inline ma_result ma_decoder_init_memory(const void *, size_t, const ma_decoder_config *, ma_decoder *) { return MA_NOT_IMPLEMENTED; }
static inline ma_result ma_decoder_get_length_in_pcm_frames(ma_decoder *, ma_uint64 *) { return MA_NOT_IMPLEMENTED; }
static inline ma_result ma_decoder_read_pcm_frames(ma_decoder *, void *, ma_uint64, ma_uint64 *) { return MA_NOT_IMPLEMENTED; }
static inline void ma_decoder_uninit(ma_decoder *) {}
static inline ma_encoder_config ma_encoder_config_init(ma_encoding_format, ma_format, uint32_t, uint32_t) { return {0}; }
static inline ma_result ma_encoder_init_file(const char *, const ma_encoder_config *, ma_encoder *) { return MA_NOT_IMPLEMENTED; }
static inline ma_result ma_encoder_write_pcm_frames(ma_encoder *, const void *, ma_uint64, ma_uint64 *) { return MA_NOT_IMPLEMENTED; }
static inline void ma_encoder_uninit(ma_encoder *) {}
