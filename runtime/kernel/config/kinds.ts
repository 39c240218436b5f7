/** The kinds of values in settings, each with its range and its description. */
import { isIP } from 'node:net'
import { z } from 'zod'
import { namesUser } from '../text/urls.js'

/** What the loader and the reference page know about a value beyond its schema. */
export interface Note {
  /** Shown as `[secret]` wherever it is printed. */
  readonly secret?: boolean
  /** What a valid value is, as a continuation of "must be". */
  readonly words?: string
  /** A value for the example file where there is no default. */
  readonly example?: unknown
  /** A file that the service reads. It must exist. */
  readonly isRead?: boolean
}

export const notes = z.registry<Note>()

/**
 * The range of a PostgreSQL integer and of a 32-bit timer. A larger number of seconds is a mistake.
 */
const INTEGER_MAX = 2_147_483_647
/** Node's timers hold 2^31 - 1 milliseconds: this many whole seconds. */
const TIMER_SECS_MAX = 2_147_483

/** A lifetime or window: whole seconds, at least one. */
export function seconds(defaultSecs: number, max = INTEGER_MAX) {
  return z.int().min(1).max(max).default(defaultSecs)
}

/** A duration that becomes a timer: whole seconds within a timer's range. */
export function timerSeconds(defaultSecs: number, min = 1) {
  return z.int().min(min).max(TIMER_SECS_MAX).default(defaultSecs)
}

/** A timer without a fixed default, from 0. The assembly computes its default from other keys. */
export function dependentTimerSeconds() {
  return z.int().min(0).max(TIMER_SECS_MAX).register(notes, { example: 5 })
}

export function count(defaultCount: number, min = 1, max = INTEGER_MAX) {
  return z.int().min(min).max(max).default(defaultCount)
}

export function flag(defaultValue: boolean) {
  return z.boolean().default(defaultValue)
}

/** A switch without a fixed default. The assembly computes its default from other keys. */
export function dependentFlag() {
  return z.boolean().register(notes, { example: true })
}

/** A value that is never printed. */
export function secret(length = 1) {
  const words =
    length === 1 ? 'a string that is not empty' : `a string of ${length} characters or more`
  return z
    .string()
    .min(length)
    .register(notes, { secret: true, words, example: 'change-this-value' })
}

/** A non-empty text. `example` is shown where there is no default. */
export function text(example: string) {
  return z.string().min(1).register(notes, { example })
}

/** An integer that is unset by default. */
export function optionalCount(min: number, max: number, example: number) {
  return z.int().min(min).max(max).register(notes, { example }).optional()
}

/** A file path. Relative paths start at the working directory. */
export function path(example: string) {
  return z
    .string()
    .min(1)
    .refine((value) => !value.includes('\0'))
    .register(notes, { words: 'a file path', example })
}

/** The path of a file that the service reads, such as a certificate. `svc config check` reads it too. */
export function readFilePath(example: string) {
  return path(example).clone().register(notes, { words: 'a file path', example, isRead: true })
}

/** An absolute URL with one of the protocols (written with their colon), without a fragment. */
export function url(protocols: readonly string[], words: string, example: string) {
  return z
    .string()
    .refine((value) => {
      if (!URL.canParse(value)) return false
      const parsed = new URL(value)
      return protocols.includes(parsed.protocol) && parsed.hash === ''
    })
    .register(notes, { words, example })
}

/**
 * A base URL to which paths are appended: http or https, without credentials, query, fragment or a
 * trailing slash, so that `base + '/path'` is correct.
 */
export function baseUrl() {
  return z.string().refine(isBaseUrl).register(notes, {
    words: 'an http or https URL without credentials, query, fragment or closing slash',
    example: 'https://id.example.com',
  })
}

/** A web origin: only scheme, host and port. The empty string means none. */
export function originOrNone() {
  return z
    .string()
    .refine((value) => value === '' || isOrigin(value))
    .register(notes, { words: 'an origin such as "https://app.example.com", or ""' })
}

export function origin() {
  return z
    .string()
    .refine(isOrigin)
    .register(notes, { words: 'an origin such as "https://app.example.com"' })
}

/** A list of strings. In the environment: a TOML array, or elements separated by commas. */
export function list<T extends z.ZodType>(item: T) {
  return z.array(item)
}

/** Addresses of name servers. Empty: the system's name servers. */
export function nameServers() {
  return list(z.string().refine(isServer))
    .register(notes, { words: 'a list of IP addresses, each with a port if it is not 53' })
    .default([])
}

/** `192.0.2.1`, `192.0.2.1:5353`, `2001:db8::1`, `[2001:db8::1]:5353`. */
function isServer(value: string): boolean {
  const [, bracketed, port] = /^\[([^\]]+)\](?::(\d{1,5}))?$/.exec(value) ?? []
  if (bracketed !== undefined) return isIP(bracketed) === 6 && isPort(port)
  if (isIP(value) !== 0) return true
  const [, address = '', after] = /^([^:]+):(\d{1,5})$/.exec(value) ?? []
  return isIP(address) === 4 && isPort(after)
}

const isPort = (text: string | undefined) =>
  text === undefined || (Number(text) > 0 && Number(text) < 65_536)

function isOrigin(value: string): boolean {
  return URL.canParse(value) && /^https?:\/\//.test(value) && new URL(value).origin === value
}

function isBaseUrl(value: string): boolean {
  if (!URL.canParse(value)) return false
  const { protocol, search, hash } = new URL(value)
  if (protocol !== 'http:' && protocol !== 'https:') return false
  return search + hash === '' && !namesUser(value) && !/[/?#]$/.test(value)
}

/** The slug of a tenant. */
export function slug() {
  return z
    .string()
    .regex(/^[a-z0-9-]{3,63}$/)
    .register(notes, { words: '3 to 63 of a-z, 0-9 and "-"', example: 'acme' })
}
