/** A TOTP secret that is offered to an account until its first code comes: sealed, and the same for a while. */
import type { Clock } from '../../runtime/kernel/clock.js'
import type { Turn } from '../../runtime/kernel/actor.js'
import type { Random } from '../../runtime/kernel/random.js'
import { SYSTEM_TENANT_ID } from '../../storage/seal.js'
import type { Sealer } from '../../storage/sealer.js'
import {
  findOfferedTotp,
  offerTotp,
  type TotpFactorRow,
  totpSecretContext,
} from '../../storage/second-factors.js'
import type { Database } from '../../storage/sql.js'
import type { SecretShown } from './protocol.js'
import { base32, otpauthUri, TOTP_SECRET_BYTES } from './totp.js'

/** How long an offered secret stays the same when the page is opened again. */
const OFFER_MS = 15 * 60_000

export type OfferedSecret = {
  readonly id: string
  readonly bytes: Uint8Array
  readonly email: string
}

export type OfferNeeds = {
  readonly database: Database
  readonly clock: Clock
  readonly random: Random
  readonly sealer: Sealer
}
type Owner = { readonly accountId: string; readonly email: string }

export function totpOffers({ database, clock, random, sealer }: OfferNeeds) {
  function opened({ id, secretSealed }: TotpFactorRow): Promise<Uint8Array> {
    return sealer.open(SYSTEM_TENANT_ID, totpSecretContext(id), secretSealed)
  }

  /** The secret that is on offer to an account: the one offered lately, or a new one. */
  async function offered({ accountId, email }: Owner, turn: Turn): Promise<OfferedSecret> {
    const now = clock.now()
    const since = new Date(now.getTime() - OFFER_MS)
    // Factors belong to the account, which belongs to no tenant.
    const lately = await database.system((tx) => findOfferedTotp(tx, accountId, since), turn)
    if (lately !== undefined) return { id: lately.id, bytes: await opened(lately), email }
    const id = random.uuid()
    const fresh = random.bytes(TOTP_SECRET_BYTES)
    const secretSealed = await sealer.seal(SYSTEM_TENANT_ID, totpSecretContext(id), fresh)
    const counts = await database.system(
      (tx) => offerTotp(tx, accountId, { id, secretSealed, createdAt: now }, since),
      turn,
    )
    if (counts === undefined) throw new Error('a secret that was just offered is gone')
    return { id: counts.id, bytes: counts.id === id ? fresh : await opened(counts), email }
  }

  return { offered, opened }
}

export function secretShown(tenant: string, { bytes, email }: OfferedSecret): SecretShown {
  const secret = base32(bytes)
  return { secret, otpauthUri: otpauthUri(tenant, email, secret) }
}

/** People type codes with spaces, as apps show them. */
export const digits = (typed: string): string => typed.replaceAll(/[\s-]/g, '')
