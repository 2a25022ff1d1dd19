/**
 * Reads a stream of server-sent events.
 * @param {ReadableStream<Uint8Array>} stream
 * @returns {AsyncGenerator<{id: string, event: string, data: any}>} data is parsed JSON
 */
export async function* events(stream) {
  const reader = stream.pipeThrough(new TextDecoderStream()).getReader();
  let rest = '';
  let current = { id: '', event: 'message', data: [] };
  try {
    for (;;) {
      const { value, done } = await reader.read();
      if (done) return; // an event that was not ended by an empty line does not count
      const lines = (rest + value).split(/\r\n|\n|\r(?!$)/);
      rest = lines.pop();
      for (const line of lines) {
        if (line === '') {
          if (current.data.length) yield { ...current, data: JSON.parse(current.data.join('\n')) };
          current = { id: '', event: 'message', data: [] };
          continue;
        }
        const [, name, text] = /^([^:]*):? ?(.*)$/.exec(line) || [];
        if (name === 'data') current.data.push(text);
        else if (name === 'event') current.event = text;
        else if (name === 'id') current.id = text;
      }
    }
  } finally {
    reader.cancel().catch(() => {});
  }
}
