/**
 * Reads the token counts in responses of model providers: the `usage` object of the OpenAI chat API
 * (`prompt_tokens`, `completion_tokens`), of Anthropic and the OpenAI responses API (`input_tokens`, `output_tokens`),
 * and `usageMetadata` of Gemini (`promptTokenCount`, `candidatesTokenCount`, `thoughtsTokenCount`), in JSON and
 * server-sent events. A stream reports sums so far: the last ones count.
 */
import type { RelayEnd } from '../protocol.js'

const KEY = Buffer.from('"usage')
/** After the key: the rest of its name, and the beginning of its value. */
const VALUE = /^(?:Metadata)?"\s*:\s*(?=\S)/
const BEGUN = /^(?:M?|Me|Met|Meta|Metad|Metada|Metadat|Metadata|(?:Metadata)?"\s*:?\s*)$/
/** Longer usage objects are ignored. */
const OBJECT_BYTES_MAX = 8 * 1024
const COUNTED = /json|event-stream/i

type TokenCounts = { readonly input: number | null; readonly output: number | null }
export const NO_TOKENS: TokenCounts = { input: null, output: null }

export interface UsageReader {
  push(chunk: Uint8Array): void
  readonly counts: TokenCounts
  readonly isEventStream: boolean
}

/** Null for content types without token usage. */
export function createUsageReader(contentType = ''): UsageReader | null {
  return COUNTED.test(contentType) ? new ScanningReader(/event-stream/i.test(contentType)) : null
}

/** Bytes of a token, of JSON and of an event stream, whose small events say much besides. */
const TOKEN_BYTES = 4
const STREAMED_TOKEN_BYTES = 32

/**
 * An estimate of the tokens of a heard call whose response does not report them: it was cut, or is an event stream without
 * usage. So a caller that leaves before the usage comes, or does not ask for it, does not call for nothing. Else 0.
 */
export function unreportedTokens(
  outcome: RelayEnd,
  requestBytes: number,
  responseBytes: number,
  usage: UsageReader | null,
): number {
  const isEventStream = usage?.isEventStream === true
  const isSilent = isEventStream && usage.counts.output === null
  if (outcome === 'completed' && !isSilent) return 0
  const answerTokenBytes = isEventStream ? STREAMED_TOKEN_BYTES : TOKEN_BYTES
  return Math.ceil(requestBytes / TOKEN_BYTES + responseBytes / answerTokenBytes)
}

class ScanningReader implements UsageReader {
  readonly isEventStream: boolean
  #input: number | null = null
  #output: number | null = null
  #held: Buffer = Buffer.alloc(0)

  constructor(isEventStream: boolean) {
    this.isEventStream = isEventStream
  }

  get counts(): TokenCounts {
    return { input: this.#input, output: this.#output }
  }

  push(chunk: Uint8Array): void {
    const bytes = Buffer.from(chunk.buffer, chunk.byteOffset, chunk.byteLength)
    const whole = this.#held.length === 0 ? bytes : Buffer.concat([this.#held, bytes])
    let from = 0
    for (;;) {
      const at = whole.indexOf(KEY, from)
      if (at < 0) break
      const text = whole.toString('latin1', at + KEY.length, at + OBJECT_BYTES_MAX)
      const end = endOfObject(text)
      if (end === 'open' && whole.length - at < OBJECT_BYTES_MAX) {
        this.#held = Buffer.from(whole.subarray(at))
        return
      }
      if (typeof end === 'number') this.#read(text.slice(0, end))
      from = at + KEY.length
    }
    const kept = Math.min(KEY.length - 1, whole.length - from)
    this.#held = kept <= 0 ? Buffer.alloc(0) : Buffer.from(whole.subarray(whole.length - kept))
  }

  #read(text: string): void {
    const output = countOf(
      text,
      /"(?:(?:output|completion)_tokens|candidatesTokenCount)"\s*:\s*(\d{1,15})/,
    )
    const thoughts = countOf(text, /"thoughtsTokenCount"\s*:\s*(\d{1,15})/)
    this.#input =
      countOf(text, /"(?:(?:input|prompt)_tokens|promptTokenCount)"\s*:\s*(\d{1,15})/) ??
      this.#input
    if (output !== undefined || thoughts !== undefined)
      this.#output = (output ?? 0) + (thoughts ?? 0)
  }
}

function countOf(text: string, pattern: RegExp): number | undefined {
  const found = pattern.exec(text)?.[1]
  return found === undefined ? undefined : Number(found)
}

/** End of the object after the key; `open`: incomplete, `none`: not an object. */
function endOfObject(text: string): number | 'open' | 'none' {
  const begin = VALUE.exec(text)?.[0].length
  if (begin === undefined) return BEGUN.test(text) ? 'open' : 'none'
  if (text[begin] !== '{') return 'none'
  let depth = 0
  for (let at = begin; at < text.length; at += 1) {
    if (text[at] === '{') depth += 1
    else if (text[at] === '}' && --depth === 0) return at + 1
  }
  return 'open'
}
