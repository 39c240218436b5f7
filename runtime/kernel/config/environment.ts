/**
 * Reads the environment of the process, and parses its names and values. No other module reads it.
 */
import { parse } from 'smol-toml'
import type { Wanted } from './tree.js'

export type Environment = Readonly<Record<string, string | undefined>>

/** A copy of the environment of this process. All other code receives an `Environment`. */
export function readEnvironment(): Environment {
  return { ...process.env }
}

/** `server.tls.cert_pem_path` -> `SVC_SERVER__TLS__CERT_PEM_PATH`. */
export function environmentName(prefix: string, path: readonly string[]): string {
  return prefix + path.join('__').toUpperCase()
}

/** The reverse of `environmentName`. Undefined when the name is not in upper case. */
export function environmentPath(prefix: string, name: string): readonly string[] | undefined {
  const rest = name.slice(prefix.length)
  return rest === rest.toUpperCase() ? rest.toLowerCase().split('__') : undefined
}

/**
 * The value of a variable: a TOML literal where the text parses as one, else the text itself. For a
 * text setting only a quoted literal counts as TOML, so that a password of digits stays a text. For
 * a list, commas separate the elements. See docs/reference/runtime.md.
 */
export function environmentValue(text: string, wants: Wanted): unknown {
  if (wants === 'strings' || wants === 'numbers') return listValue(text, wants)
  const literal = literalOf(text)
  if (wants === 'string') return typeof literal === 'string' ? literal : text
  return literal ?? text
}

function listValue(text: string, wants: 'strings' | 'numbers'): unknown {
  const literal = literalOf(text)
  if (Array.isArray(literal)) return literal
  if (typeof literal === 'string') return [literal]
  if (text.trim() === '') return []
  const item = wants === 'strings' ? 'string' : 'literal'
  return text.split(',').map((part) => environmentValue(part.trim(), item))
}

/** The value, when the text is exactly one TOML literal, else undefined. */
function literalOf(text: string): unknown {
  try {
    const parsed = parse(`value = ${text}`, { maxDepth: 16 })
    return Object.keys(parsed).length === 1 ? parsed['value'] : undefined
  } catch {
    return undefined
  }
}

/**
 * Sets a variable that a native library reads while it is loaded, unless the operator set it. It
 * has no effect in worker threads, whose environment is a copy.
 */
export function presetForLibrary(name: string, value: string): void {
  process.env[name] ??= value
}
