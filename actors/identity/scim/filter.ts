/** The parser of filters and paths (RFC 7644 sections 3.4.2.2 and 3.5.2). The text comes from clients, so it is bounded. */
import { invalid } from './faults.js'
import type { ScimType } from './protocol.js'

const TEXT_CHARS_MAX = 4_096
const DEPTH_MAX = 16
const TERMS_MAX = 64

const OPERATORS = ['eq', 'ne', 'co', 'sw', 'ew', 'gt', 'ge', 'lt', 'le'] as const
export type Operator = (typeof OPERATORS)[number]
export type Value = string | number | boolean | null

/** A name as the client wrote it: `urn:...:User:name.givenName`. */
export type AttributePath = {
  /** Null: the core schema of the resource. */
  readonly schema: string | null
  readonly name: string
  readonly sub: string | null
}

export type Filter =
  | { readonly tag: 'and' | 'or'; readonly parts: readonly Filter[] }
  | { readonly tag: 'not'; readonly part: Filter }
  | { readonly tag: 'present'; readonly path: AttributePath }
  | {
      readonly tag: 'compare'
      readonly path: AttributePath
      readonly operator: Operator
      readonly value: Value
    }
  /** `emails[type eq "work"]`: one value of the attribute fulfils the filter. */
  | { readonly tag: 'value'; readonly path: AttributePath; readonly filter: Filter }

/** The target of a PATCH operation: `emails[type eq "work"].value`. */
export type PatchPath = AttributePath & { readonly filter: Filter | null }

type Token =
  | { readonly kind: 'word'; readonly text: string }
  | { readonly kind: 'string'; readonly text: string }
  | { readonly kind: 'mark'; readonly text: '(' | ')' | '[' | ']' }

/** Parses the filter of a list. @throws {ScimFault} `invalidFilter`. */
export function parseFilter(text: string): Filter {
  const parser = new Parser(text, 'invalidFilter')
  const filter = parser.filter()
  parser.end()
  return filter
}

/** Parses the path of a PATCH operation. @throws {ScimFault} `invalidPath`, or `invalidFilter` inside of brackets. */
export function parsePath(text: string): PatchPath {
  const parser = new Parser(text, 'invalidPath')
  const path = parser.path()
  parser.end()
  return path
}

/** Splits a name into schema, attribute and sub-attribute. Null if it is invalid. */
export function attributePath(text: string): AttributePath | null {
  const colon = text.lastIndexOf(':')
  const schema = colon < 0 ? null : text.slice(0, colon)
  if (schema !== null && !/^urn:[A-Za-z0-9:._-]+$/i.test(schema)) return null
  const match = /^([A-Za-z][\w-]*)(?:\.(\$?[A-Za-z][\w-]*))?$/.exec(text.slice(colon + 1))
  if (match === null) return null
  return { schema, name: match[1]!, sub: match[2] ?? null }
}

class Parser {
  readonly #tokens: readonly Token[]
  readonly #scimType: ScimType
  #at = 0
  #terms = 0

  constructor(text: string, scimType: ScimType) {
    this.#scimType = scimType
    if (text.length > TEXT_CHARS_MAX) {
      throw this.fault(`It is longer than ${TEXT_CHARS_MAX} characters.`)
    }
    this.#tokens = this.scan(text)
  }

  /** `term {or term}`, where `and` binds more strongly (RFC 7644 section 3.4.2.2). */
  filter(depth = 0): Filter {
    if (depth > DEPTH_MAX) throw this.fault(`It has more than ${DEPTH_MAX} levels.`)
    const parts = [this.conjunction(depth)]
    while (this.takeWord('or')) parts.push(this.conjunction(depth))
    return parts.length === 1 ? parts[0]! : { tag: 'or', parts }
  }

  path(): PatchPath {
    const target = this.attribute()
    if (!this.takeMark('[')) return { ...target, filter: null }
    if (target.sub !== null) throw this.fault('A sub-attribute has no values to select.')
    const filter = this.filter(1)
    this.needMark(']')
    const next = this.peek()
    if (next === undefined) return { ...target, filter }
    const match = next.kind === 'word' ? /^\.(\$?[A-Za-z][\w-]*)$/.exec(next.text) : null
    if (match === null) throw this.fault('A bracket must be followed by a sub-attribute.')
    this.#at += 1
    return { ...target, sub: match[1]!, filter }
  }

  end(): void {
    if (this.#at < this.#tokens.length) {
      throw this.fault(`"${this.peek()!.text}" is not expected there.`)
    }
  }

  private conjunction(depth: number): Filter {
    const parts = [this.term(depth)]
    while (this.takeWord('and')) parts.push(this.term(depth))
    return parts.length === 1 ? parts[0]! : { tag: 'and', parts }
  }

  private term(depth: number): Filter {
    if (this.takeMark('(')) return this.grouped(depth)
    const next = this.#tokens[this.#at + 1]
    if (next?.kind === 'mark' && next.text === '(' && this.takeWord('not')) {
      this.#at += 1
      return { tag: 'not', part: this.grouped(depth) }
    }
    this.#terms += 1
    if (this.#terms > TERMS_MAX) throw this.fault(`It has more than ${TERMS_MAX} comparisons.`)
    const path = this.attribute()
    if (this.takeMark('[')) {
      if (path.sub !== null) throw this.fault('A sub-attribute has no values to select.')
      const filter = this.filter(depth + 1)
      this.needMark(']')
      return { tag: 'value', path, filter: this.selected(filter) }
    }
    return this.comparison(path)
  }

  /** `emails[type eq "work"].value eq "a@b"`: one value fulfils both. */
  private selected(filter: Filter): Filter {
    const next = this.peek()
    const match = next?.kind === 'word' ? /^\.(\$?[A-Za-z][\w-]*)$/.exec(next.text) : null
    if (match === null) return filter
    this.#at += 1
    const sub = { schema: null, name: match[1]!, sub: null }
    return { tag: 'and', parts: [filter, this.comparison(sub)] }
  }

  private comparison(path: AttributePath): Filter {
    const operator = this.word().toLowerCase()
    if (operator === 'pr') return { tag: 'present', path }
    const known = OPERATORS.find((each) => each === operator)
    if (known === undefined) throw this.fault(`"${operator}" is not an operator.`)
    return { tag: 'compare', path, operator: known, value: this.value() }
  }

  private grouped(depth: number): Filter {
    const filter = this.filter(depth + 1)
    this.needMark(')')
    return filter
  }

  private attribute(): AttributePath {
    const text = this.word()
    const path = attributePath(text)
    if (path === null) throw this.fault(`"${text}" is not an attribute.`)
    return path
  }

  private value(): Value {
    const token = this.peek()
    this.#at += 1
    if (token?.kind === 'string') return token.text
    if (token?.kind === 'word') {
      const word = token.text.toLowerCase()
      if (word === 'true') return true
      if (word === 'false') return false
      if (word === 'null') return null
      if (/^-?\d{1,15}(?:\.\d{1,15})?$/.test(word)) return Number(word)
    }
    throw this.fault('A comparison needs a value: a string in quotes, true, false or a number.')
  }

  private word(): string {
    const token = this.peek()
    if (token?.kind !== 'word') {
      throw this.fault(token === undefined ? 'It is incomplete.' : `"${token.text}" is not a name.`)
    }
    this.#at += 1
    return token.text
  }

  private peek(): Token | undefined {
    return this.#tokens[this.#at]
  }

  private takeWord(word: string): boolean {
    const token = this.peek()
    const isIt = token?.kind === 'word' && token.text.toLowerCase() === word
    if (isIt) this.#at += 1
    return isIt
  }

  private takeMark(mark: string): boolean {
    const token = this.peek()
    const isIt = token?.kind === 'mark' && token.text === mark
    if (isIt) this.#at += 1
    return isIt
  }

  private needMark(mark: string): void {
    if (!this.takeMark(mark)) throw this.fault(`"${mark}" is missing.`)
  }

  private scan(text: string): readonly Token[] {
    const tokens: Token[] = []
    // Sticky: each match begins where the one before it ended.
    const pattern = /\s*(?:([()[\]])|("(?:[^"\\]|\\.)*")|([^\s()[\]"]+))/y
    const end = text.trimEnd().length
    while (pattern.lastIndex < end) {
      const from = pattern.lastIndex
      const match = pattern.exec(text)
      if (match === null) throw this.fault(`It cannot be read from character ${from + 1} on.`)
      const [, mark, quoted, word] = match
      if (mark !== undefined) tokens.push({ kind: 'mark', text: mark as '(' })
      else if (quoted !== undefined) tokens.push({ kind: 'string', text: this.unquoted(quoted) })
      else tokens.push({ kind: 'word', text: word! })
    }
    return tokens
  }

  /** A string has the syntax of JSON (RFC 7644 section 3.4.2.2). */
  private unquoted(quoted: string): string {
    let text: unknown
    try {
      text = JSON.parse(quoted)
    } catch {
      throw this.fault('A string is not valid JSON.')
    }
    // PostgreSQL cannot store NUL.
    if (typeof text !== 'string' || text.includes('\0')) throw this.fault('A string is not valid.')
    return text
  }

  private fault(why: string) {
    const what = this.#scimType === 'invalidFilter' ? 'filter' : 'path'
    return invalid(this.#scimType, `The ${what} is not valid. ${why}`)
  }
}
