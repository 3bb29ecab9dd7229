/** A message of a stream of server-sent events. */
export interface Message {
  /** Id of the last event so far. */
  id: string;
  event: string;
  data: string;
  /** How long to wait before a reconnect, in milliseconds, where the stream has said it. */
  retry?: number;
}

/**
 * Reads server-sent events as the HTML standard says, but that a message without data is given as well: it may move the
 * id on. What comes before the end of the stream without an empty line behind it is no message.
 */
export async function* messages(chunks: AsyncIterable<Uint8Array>): AsyncGenerator<Message> {
  let message: Message = { id: "", event: "", data: "" };
  let data: string[] = [];
  for await (const line of lines(chunks)) {
    if (line === "") {
      message.data = data.join("\n");
      yield message;
      message = { id: message.id, event: "", data: "" };
      data = [];
      continue;
    }
    const [field, value] = split(line);
    if (field === "data") {
      data.push(value);
    } else if (field === "event") {
      message.event = value;
    } else if (field === "id" && !value.includes("\0")) {
      message.id = value;
    } else if (field === "retry" && /^\d+$/.test(value)) {
      message.retry = Number(value);
    }
  }
}

/** Field and value of a line; a comment has no field. */
function split(line: string): [string, string] {
  const colon = line.indexOf(":");
  if (colon < 0) {
    return [line, ""];
  }
  const value = line.slice(colon + 1);
  return [line.slice(0, colon), value.startsWith(" ") ? value.slice(1) : value];
}

/** Lines that are ended by LF, CRLF or CR, which may lie in two chunks. */
async function* lines(chunks: AsyncIterable<Uint8Array>): AsyncGenerator<string> {
  const decoder = new TextDecoder(); // leaves out a byte order mark
  let rest = "";
  for await (const chunk of chunks) {
    rest += decoder.decode(chunk, { stream: true });
    // A CR at the end may be half of a CRLF.
    const end = rest.endsWith("\r") ? rest.length - 1 : rest.length;
    const whole = rest.slice(0, end).split(/\r\n|\n|\r/);
    rest = (whole.pop() ?? "") + rest.slice(end);
    yield* whole;
  }
}
