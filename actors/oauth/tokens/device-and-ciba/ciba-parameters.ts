/** Reads the parameters of a CIBA request without look-ups (CIBA Core 1.0 section 7.1). */
import { readLevel } from '../authorization/parameters.js'
import type { AssuranceLevel } from '../../../domain/assurance.js'
import type { OAuthForm } from '../form.js'
import type { OAuthRefused } from '../protocol.js'
import { refuse } from '../refusals.js'
import type { CibaRefused } from './protocol.js'

const EXPIRES_IN_SECS = 300
const EXPIRY_SECS_MIN = 30
const EXPIRY_SECS_MAX = 600
const BINDING_MESSAGE_CHARACTERS_MAX = 64
const HINT_CHARACTERS_MAX = 16_384
const HINTS = ['login_hint', 'login_hint_token', 'id_token_hint'] as const

export type Hint = { readonly kind: (typeof HINTS)[number]; readonly value: string }

type CibaRequest = {
  readonly tag: 'read'
  readonly hint: Hint
  readonly bindingMessage: string | null
  readonly level: AssuranceLevel
  readonly expiresInSecs: number
}

/** Only the presence of `openid` is checked here. readClientRequest checks the other scopes. */
export function readCibaRequest(
  form: OAuthForm,
  levelMax: AssuranceLevel,
): CibaRequest | CibaRefused | OAuthRefused {
  if (form.get('request') !== null)
    return refuse('invalid_request', 'signed requests are not supported', 'parameter_invalid')
  const scope = form.get('scope')
  if (scope === null) return refuse('invalid_request', 'scope is missing', 'parameter_missing')
  if (!scope.split(' ').includes('openid'))
    return refuse('invalid_scope', 'the scope must contain openid', 'scope_not_allowed')

  const hints = HINTS.filter((name) => form.get(name) !== null)
  const [kind] = hints
  if (kind === undefined || hints.length > 1)
    return refuse(
      'invalid_request',
      `exactly one of ${HINTS.join(', ')} is needed`,
      'parameter_invalid',
    )
  const value = form.get(kind)!
  if (value.length > HINT_CHARACTERS_MAX)
    return refuse('invalid_request', `${kind} is too long`, 'parameter_invalid')

  const bindingMessage = form.get('binding_message')
  if (bindingMessage !== null && !isBindingMessage(bindingMessage)) {
    const description = `binding_message must be 1 to ${BINDING_MESSAGE_CHARACTERS_MAX} printable characters on one line`
    return { tag: 'ciba_refused', error: 'invalid_binding_message', description }
  }

  const level = readLevel(form.get('acr_values'))
  if (level > levelMax)
    return refuse(
      'invalid_request',
      'the requested assurance level is not available',
      'parameter_invalid',
    )

  const expiry = form.get('requested_expiry')
  const expiresInSecs = expiry === null ? EXPIRES_IN_SECS : readExpiry(expiry)
  if (expiresInSecs === null)
    return refuse(
      'invalid_request',
      `requested_expiry must be ${EXPIRY_SECS_MIN} to ${EXPIRY_SECS_MAX} seconds`,
      'parameter_invalid',
    )
  return { tag: 'read', hint: { kind, value }, bindingMessage, level, expiresInSecs }
}

/**
 * The user compares the message with another screen. Invisible characters, line breaks and direction
 * controls could make two different messages look equal (Unicode categories C, Zl, Zp).
 */
export function isBindingMessage(text: string): boolean {
  const characters = [...text].length
  return (
    characters >= 1 &&
    characters <= BINDING_MESSAGE_CHARACTERS_MAX &&
    text.trim() === text &&
    !/[\p{C}\p{Zl}\p{Zp}]/u.test(text)
  )
}

function readExpiry(text: string): number | null {
  if (!/^[0-9]{1,6}$/.test(text)) return null
  const secs = Number(text)
  return secs >= EXPIRY_SECS_MIN && secs <= EXPIRY_SECS_MAX ? secs : null
}
