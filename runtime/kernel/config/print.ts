/** Values, sources and failures in printable form, with secrets hidden. */
import { TomlDate } from 'smol-toml'
import type { Failure, Source } from './outcome.js'
import type { Leaf } from './tree.js'

const HIDDEN = '[secret]'
const SHOWN_CHARACTERS_MAX = 200

/** A value as a TOML literal, with secrets and the passwords inside URLs hidden. */
export function printed(leaf: Leaf | undefined, value: unknown): string {
  if (value === undefined) return 'unset'
  if (leaf?.secret) return HIDDEN
  const text = tomlLiteral(value)
  const cut = text.length > SHOWN_CHARACTERS_MAX
  return cut ? `${text.slice(0, SHOWN_CHARACTERS_MAX)}...` : text
}

/** A value as plain data for JSON, with secrets hidden. */
export function shown(leaf: Leaf | undefined, value: unknown): unknown {
  if (value === undefined) return null
  if (leaf?.secret) return HIDDEN
  if (typeof value === 'string') return withoutPasswords(value)
  if (Array.isArray(value)) return value.map((item) => shown(undefined, item))
  return value
}

/**
 * Hides the secrets in a URL: `user:password@`, with or without a scheme before it, and parameters
 * with the name of a secret, in a query or in libpq's `host=db password=...`. Works on any text, so
 * that an invalid URL is covered too. The password extends to the last `@`, because an unescaped
 * password may contain any character.
 */
export function withoutPasswords(text: string): string {
  return text
    .replace(/(\/\/[^/:@]*):.*@/gs, `$1:${HIDDEN}@`)
    .replace(/^(?!\w+:\/\/)([^\s/:@]*):.*@/gs, `$1:${HIDDEN}@`)
    .replace(
      /((?:^|[?&;\s])[\w-]*(?:passw(?:or)?d|pwd|secret|token|key)[\w-]*\s*=\s*)(?:'(?:\\.|[^'\\])*'?|[^&;\s]*)/gi,
      `$1${HIDDEN}`,
    )
}

export function tomlLiteral(value: unknown): string {
  if (typeof value === 'string') return JSON.stringify(withoutPasswords(value))
  if (Array.isArray(value)) return `[${value.map(tomlLiteral).join(', ')}]`
  if (value instanceof TomlDate) return value.toISOString()
  if (typeof value === 'object' && value !== null) {
    const pairs = Object.entries(value).map(
      ([key, item]) => `${tomlKey(key)} = ${tomlLiteral(item)}`,
    )
    return pairs.length === 0 ? '{}' : `{ ${pairs.join(', ')} }`
  }
  return String(value)
}

function tomlKey(key: string): string {
  return /^[A-Za-z0-9_-]+$/.test(key) ? key : JSON.stringify(key)
}

export function printedSource(source: Source): string {
  switch (source.kind) {
    case 'default':
      return 'default'
    case 'file':
      return `${source.path}:${source.line}`
    case 'environment':
      return source.name
    case 'fallback':
      return `from ${source.from}`
  }
}

/** All failures as one block of text, without a trailing newline. */
export function printedFailures(failures: readonly Failure[]): string {
  const one = failures.length === 1
  const heading = `The configuration is refused: ${failures.length} ${one ? 'failure' : 'failures'}.`
  return [heading, ...failures.map(printedFailure)].join('\n\n')
}

function printedFailure({ key, value, source, rule, fix }: Failure): string {
  const what = value === undefined ? key : `${key} = ${value}`
  const where = printedSource(source)
  return `  ${what}${where === key ? '' : `  (${where})`}\n    ${rule}\n    To fix: ${fix}`
}
