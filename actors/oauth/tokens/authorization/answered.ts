/**
 * The answer of a decided request. A form that is sent twice (a double click, Back and again) gets the same redirect, so
 * the code is kept until it is redeemed. Only the browser that decided can open it: the key is made from the handle
 * of the request and the session cookie, and the database has neither.
 */
import { createCipheriv, createDecipheriv, hkdfSync } from 'node:crypto'
import { findCodes } from '../../../../storage/oauth/authorization-codes.js'
import type { InteractionNeeds } from './pending-request.js'
import { sha256 } from '../../../domain/secret-hashes.js'

/** Time in which a form that is sent again gets the same redirect. */
const REPEATED_MS = 60_000
const NONCE_BYTES = 12
const TAG_BYTES = 16
const DENIED = 'denied'

/** The browser that decides: its session cookie, and the handle of the request. */
type Answering = { readonly handle: string; readonly sessionToken: string }

const keyOf = ({ handle, sessionToken }: Answering): Uint8Array =>
  new Uint8Array(hkdfSync('sha256', sessionToken, handle, 'authorization answer', 32))

/** Encrypts an answer: a code, or null for a denial. */
export function sealAnswer(
  random: InteractionNeeds['random'],
  by: Answering,
  code: string | null,
): Uint8Array {
  const nonce = random.bytes(NONCE_BYTES)
  const cipher = createCipheriv('aes-256-gcm', keyOf(by), nonce)
  const text = [cipher.update(code ?? DENIED, 'utf8'), cipher.final()]
  return Buffer.concat([nonce, ...text, cipher.getAuthTag()])
}

/** The code of an answer, or null for a denial. Undefined in another browser. */
function openAnswer(by: Answering, sealed: Uint8Array): string | null | undefined {
  const bytes = Buffer.from(sealed)
  const decipher = createDecipheriv('aes-256-gcm', keyOf(by), bytes.subarray(0, NONCE_BYTES))
  decipher.setAuthTag(bytes.subarray(-TAG_BYTES))
  try {
    const text = decipher.update(bytes.subarray(NONCE_BYTES, -TAG_BYTES), undefined, 'utf8')
    const code = text + decipher.final('utf8')
    return code === DENIED ? null : code
  } catch {
    return undefined
  }
}

type AnsweredRow = { readonly answer: Uint8Array | null; readonly consumedAt: Date | null }

/**
 * What this browser decided before. `again`: the same redirect is due, with the code or a denial. `done`: the code was
 * redeemed, or its time is over. Null in another browser, after a sign-out, and for a denial long ago.
 */
export async function answeredBefore(
  { database, clock }: Pick<InteractionNeeds, 'database' | 'clock'>,
  by: { readonly handle: string; readonly sessionToken: string | null },
  { answer, consumedAt }: AnsweredRow,
): Promise<{ readonly tag: 'again'; readonly code: string | null } | { tag: 'done' } | null> {
  const { handle, sessionToken } = by
  if (answer === null || consumedAt === null || sessionToken === null) return null
  const code = openAnswer({ handle, sessionToken }, answer)
  if (code === undefined) return null
  const now = clock.now()
  const isRecent = now.getTime() - consumedAt.getTime() < REPEATED_MS
  if (code === null) return isRecent ? { tag: 'again', code } : null
  const [row] = await findCodes(database, [sha256(code)])
  if (row?.standing !== true) return null
  const isOpen = row.redeemedAt === null && row.expiresAt > now
  return isRecent && isOpen ? { tag: 'again', code } : { tag: 'done' }
}
