/**
 * Line numbers of a TOML document. The parser returns values without positions, and this scan
 * returns positions without values. It only works for documents that the parser has accepted.
 */
import { parse } from 'smol-toml'

/** `pathKey` of a key, table or array element -> its line, counted from 1. */
export type TomlLines = ReadonlyMap<string, number>

export function pathKey(path: readonly string[]): string {
  return JSON.stringify(path)
}

/** The line of the path, or of the nearest table around it. */
export function lineOf(lines: TomlLines, path: readonly string[]): number {
  for (let length = path.length; length > 0; length -= 1) {
    const line = lines.get(pathKey(path.slice(0, length)))
    if (line !== undefined) return line
  }
  return 1
}

export function tomlLines(text: string): TomlLines {
  const walk = new Walk(text)
  walk.document()
  return walk.lines
}

const BARE_KEY = /[A-Za-z0-9_-]+/y
const BARE_VALUE = /[^,\]}\r\n#]+/y
const BLANK = /[ \t]+/y

class Walk {
  readonly lines = new Map<string, number>()
  /** Path of an array of tables -> how many elements it has so far. */
  private readonly elements = new Map<string, number>()
  private readonly text: string
  private at = 0
  private line = 1

  constructor(text: string) {
    this.text = text
  }

  document(): void {
    let table: string[] = []
    for (this.space(); this.at < this.text.length; this.space()) {
      if (this.text.startsWith('[[', this.at)) table = this.header(2)
      else if (this.text[this.at] === '[') table = this.header(1)
      else this.pair(table)
    }
  }

  /** Reads `[a.b]` or `[[a.b]]` and returns the path of the opened table. */
  private header(brackets: number): string[] {
    const { line } = this
    this.at += brackets
    const key = this.key()
    this.at += brackets
    const path: string[] = []
    for (const [index, segment] of key.entries()) {
      path.push(segment)
      this.mark(path, line)
      const last = index === key.length - 1
      const seen = this.elements.get(pathKey(path))
      if (last && brackets === 2) {
        this.elements.set(pathKey(path), (seen ?? 0) + 1)
        path.push(String(seen ?? 0))
      } else if (seen !== undefined) path.push(String(seen - 1))
    }
    this.mark(path, line)
    return path
  }

  private pair(table: readonly string[]): void {
    const { line } = this
    const path = [...table]
    for (const segment of this.key()) {
      path.push(segment)
      this.mark(path, line)
    }
    this.at += 1
    this.blank()
    this.value(path)
  }

  /** Reads a dotted key and stops at the character after it. */
  private key(): string[] {
    const segments: string[] = []
    for (;;) {
      this.blank()
      const quote = this.text[this.at]
      if (quote === '"' || quote === "'") {
        const start = this.at
        this.string()
        segments.push(String(parse(`k = ${this.text.slice(start, this.at)}`)['k']))
      } else segments.push(this.take(BARE_KEY))
      this.blank()
      if (this.text[this.at] !== '.') return segments
      this.at += 1
    }
  }

  private value(path: readonly string[]): void {
    this.mark(path, this.line)
    const first = this.text[this.at]
    if (first === '"' || first === "'") this.string()
    else if (first === '[') this.array(path)
    else if (first === '{') this.inlineTable(path)
    else this.take(BARE_VALUE)
  }

  private array(path: readonly string[]): void {
    this.at += 1
    for (let index = 0; ; index += 1) {
      if (this.closes(']')) return
      this.value([...path, String(index)])
    }
  }

  private inlineTable(path: readonly string[]): void {
    this.at += 1
    while (!this.closes('}')) this.pair(path)
  }

  /** Skips white space and commas. True when the bracket follows, which is then skipped too. */
  private closes(bracket: string): boolean {
    this.space()
    while (this.text[this.at] === ',') {
      this.at += 1
      this.space()
    }
    if (this.at < this.text.length && this.text[this.at] !== bracket) return false
    this.at += 1
    return true
  }

  private string(): void {
    const quote = this.text[this.at]!
    const triple = quote.repeat(3)
    const close = this.text.startsWith(triple, this.at) ? triple : quote
    this.at += close.length
    while (this.at < this.text.length && !this.text.startsWith(close, this.at)) {
      if (quote === '"' && this.text[this.at] === '\\') this.step()
      this.step()
    }
    this.at += close.length
    // Up to two quotes before the closing three belong to the text.
    if (close === triple) while (this.text[this.at] === quote) this.at += 1
  }

  private space(): void {
    for (;;) {
      this.blank()
      const next = this.text[this.at]
      if (next === '\n' || next === '\r') this.step()
      else if (next === '#') this.comment()
      else return
    }
  }

  private comment(): void {
    const end = this.text.indexOf('\n', this.at)
    this.at = end === -1 ? this.text.length : end
  }

  private blank(): void {
    this.take(BLANK)
  }

  private step(): void {
    if (this.text[this.at] === '\n') this.line += 1
    this.at += 1
  }

  private take(pattern: RegExp): string {
    pattern.lastIndex = this.at
    const [match = ''] = pattern.exec(this.text) ?? []
    this.at += match.length
    return match
  }

  private mark(path: readonly string[], line: number): void {
    const key = pathKey(path)
    if (!this.lines.has(key)) this.lines.set(key, line)
  }
}
