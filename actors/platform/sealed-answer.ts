/**
 * Answers that are kept for a form that is sent again (a double click, Back and again). Only the browser that sent it can
 * open its answer: the key is made from the secret of the browser and from what was sent, and the database has neither.
 */
import { createCipheriv, createDecipheriv, hkdfSync } from 'node:crypto'
import type { Clock } from '../../runtime/kernel/clock.js'
import type { Random } from '../../runtime/kernel/random.js'
import { findFormAnswer, storeFormAnswer } from '../../storage/platform/sealing/form-answers.js'
import type { Transaction } from '../../storage/platform/sql.js'
import { sha256 } from '../domain/secret-hashes.js'

/** Time in which a form that is sent again gets the same answer. */
export const REPEATED_MS = 60_000
const NONCE_BYTES = 12
const TAG_BYTES = 16

/** `sent` is a secret too: the handle of a request, or the token of a link. */
export type Answering = { readonly browserId: string; readonly sent: string }

const keyOf = ({ browserId, sent }: Answering): Uint8Array =>
  new Uint8Array(hkdfSync('sha256', browserId, sent, 'form answer', 32))

/** Encrypts an answer, which must survive JSON. */
export function sealAnswer(random: Random, by: Answering, answer: unknown): Uint8Array {
  const nonce = random.bytes(NONCE_BYTES)
  const cipher = createCipheriv('aes-256-gcm', keyOf(by), nonce)
  const text = [cipher.update(JSON.stringify(answer), 'utf8'), cipher.final()]
  return Buffer.concat([nonce, ...text, cipher.getAuthTag()])
}

/** The answer. Undefined for another browser, or if something else was sent. */
export function openAnswer(by: Answering, sealed: Uint8Array): unknown {
  const bytes = Buffer.from(sealed)
  const decipher = createDecipheriv('aes-256-gcm', keyOf(by), bytes.subarray(0, NONCE_BYTES))
  decipher.setAuthTag(bytes.subarray(-TAG_BYTES))
  try {
    const text = decipher.update(bytes.subarray(NONCE_BYTES, -TAG_BYTES), undefined, 'utf8')
    return JSON.parse(text + decipher.final('utf8')) as unknown
  } catch {
    return undefined
  }
}

/** The form of a tenant, by its secret. */
type Form = { readonly tenantId: string; readonly secret: string }

/** Stores an answer for a minute, in the transaction that gives it. */
export const storeAnswer = (
  tx: Transaction,
  { random, clock }: { readonly random: Random; readonly clock: Clock },
  { tenantId, secret }: Form,
  by: Answering,
  answer: unknown,
) =>
  storeFormAnswer(tx, {
    tenantId,
    formSha256: sha256(secret),
    answer: sealAnswer(random, by, answer),
    expiresAt: new Date(clock.now().getTime() + REPEATED_MS),
  })

/** The answer of the last minute to a form. Undefined for another browser, or if something else was sent. */
export async function findAnswer(
  tx: Transaction,
  { secret }: Pick<Form, 'secret'>,
  by: Answering,
  now: Date,
): Promise<unknown> {
  const found = await findFormAnswer(tx, sha256(secret), now)
  return found && openAnswer(by, found.answer)
}
