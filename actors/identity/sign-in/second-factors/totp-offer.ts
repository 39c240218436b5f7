/**
 * A TOTP secret offered for enrolment. It stays the same for a while, for one session. Another session of the account,
 * perhaps of an attacker with the password, must not learn the secret enrolled here. So the account stores one sealed
 * base value, and each session derives its own secret from it.
 */
import { createHmac } from 'node:crypto'
import type { MessageContext } from '../../../../runtime/kernel/actor.js'
import { SYSTEM_TENANT_ID } from '../../../../storage/platform/sealing/seal.js'
import type { Sealer } from '../../../../storage/platform/sealing/sealer.js'
import {
  findOfferedTotp,
  offerTotp,
  type TotpFactorRow,
  totpSecretContext,
} from '../../../../storage/identity/second-factors.js'
import type { SecretShown } from '../protocol.js'
import { base32, otpauthUri, TOTP_SECRET_BYTES } from './totp.js'
import type { WriteNeeds } from '../../../platform/write-needs.js'

/** How long the offered secret stays the same when the page is unsealed again. */
const OFFER_MS = 15 * 60_000

type OfferedSecret = {
  readonly id: string
  readonly bytes: Uint8Array
  readonly email: string
}

type OfferNeeds = WriteNeeds & {
  readonly sealer: Sealer
}
type Owner = { readonly id: string; readonly accountId: string; readonly email: string }

export function unsealedSecret(
  sealer: Sealer,
  { id, secretSealed }: Pick<TotpFactorRow, 'id' | 'secretSealed'>,
): Promise<Uint8Array> {
  return sealer.open(SYSTEM_TENANT_ID, totpSecretContext(id), secretSealed)
}

/** The secret offered to a session: the recent one or a new one. */
export async function offeredSecret(
  { database, clock, random, sealer }: OfferNeeds,
  { id: sessionId, accountId, email }: Owner,
  context: MessageContext,
): Promise<OfferedSecret> {
  const now = clock.now()
  const since = new Date(now.getTime() - OFFER_MS)
  // Factors belong to the global account.
  const recent = await database.system((tx) => findOfferedTotp(tx, accountId, since), context)
  const offer = (id: string, base: Uint8Array) => ({
    id,
    bytes: sessionSecret(base, sessionId),
    email,
  })
  if (recent !== undefined) return offer(recent.id, await unsealedSecret(sealer, recent))
  const id = random.uuid()
  const fresh = random.bytes(TOTP_SECRET_BYTES)
  const secretSealed = await sealer.seal(SYSTEM_TENANT_ID, totpSecretContext(id), fresh)
  const stored = await database.system(
    (tx) => offerTotp(tx, accountId, { id, secretSealed, createdAt: now }, since),
    context,
  )
  if (stored === undefined) throw new Error('the offered secret was not found')
  return offer(stored.id, stored.id === id ? fresh : await unsealedSecret(sealer, stored))
}

/** The secret as stored after its first code was confirmed. */
export async function sealedSecret(
  { sealer }: Pick<OfferNeeds, 'sealer'>,
  { id, bytes }: OfferedSecret,
) {
  return { id, secretSealed: await sealer.seal(SYSTEM_TENANT_ID, totpSecretContext(id), bytes) }
}

/**
 * Derives the secret of a session. It reveals nothing about secrets of other sessions, and `base` is not used
 * afterwards.
 */
function sessionSecret(base: Uint8Array, sessionId: string): Uint8Array {
  const bytes = createHmac('sha256', base).update(`totp offer ${sessionId}`).digest()
  base.fill(0)
  return new Uint8Array(bytes.subarray(0, TOTP_SECRET_BYTES))
}

export function secretShown(tenant: string, { bytes, email }: OfferedSecret): SecretShown {
  return { secret: base32(bytes), otpauthUri: otpauthUri(tenant, email, bytes) }
}

/** Users type codes with spaces, as apps show them. */
export const digits = (typed: string): string => typed.replaceAll(/[\s-]/g, '')
