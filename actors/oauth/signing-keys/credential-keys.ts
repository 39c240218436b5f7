/**
 * The keys of tenants that issue credentials, and of security events. They are made with their first use, and each use rotates
 * those that are due: without use no new keys are needed.
 */
import type { Handlers, MessageContext } from '../../../runtime/kernel/actor.js'
import type { Logger } from '../../../runtime/kernel/log.js'
import { lastOfServiceKey } from '../../../storage/oauth/credential-issuance.js'
import { ttlCache } from '../../platform/batching/ttl-cache.js'
import { type KeeperNeeds, KeyKeeper } from './keeper.js'
import type {
  KeysUnavailable,
  Signed,
  SignClaims,
  SigningAlgorithm,
  SigningKeysProtocol,
} from './protocol.js'
import { keySetOf, type Ring } from './ring.js'
import {
  CREDENTIAL_USE,
  isPublished,
  type KeyRow,
  planMaintenance,
  SECURITY_EVENT_USE,
  type Use,
} from './rules.js'

/** Tenants whose keys are in memory. Others are read again. */
const TENANTS_MAX = 1_000
/** Owns the keys of security events, as the nil UUID owns the keys of the service. */
const SECURITY_EVENTS = '00000000-0000-0000-0000-000000000001'
const UNAVAILABLE = { tag: 'keys_unavailable' } as const

type CredentialKeysNeeds = KeeperNeeds & {
  readonly settings: { readonly key_rotation_days: number }
}

/** @param service the keys of the service, which signed the credentials of tenants before. */
export function credentialKeys(needs: CredentialKeysNeeds, log: Logger, service: KeyKeeper) {
  const { database, clock, settings } = needs
  const keepers = new Map<string, KeyKeeper>()
  const lastSigned = ttlCache<Date | null>(clock)

  function keeperOf(tenantId: string): KeyKeeper {
    const keeper = keepers.get(tenantId) ?? new KeyKeeper(needs, log, tenantId)
    // The oldest use is first.
    keepers.delete(tenantId)
    keepers.set(tenantId, keeper)
    const [oldest] = keepers.keys()
    if (keepers.size > TENANTS_MAX && oldest !== undefined) keepers.delete(oldest)
    return keeper
  }

  async function ringOf(
    owner: string,
    context: MessageContext,
    use: Use = CREDENTIAL_USE,
  ): Promise<Ring | undefined> {
    const keeper = keeperOf(owner)
    const ring = keeper.fresh ?? (await keeper.forSigning())
    const plan = (rows: readonly KeyRow[]) =>
      planMaintenance(rows, clock.now(), settings.key_rotation_days, use)
    if (ring === undefined || plan(ring.rows).steps.length === 0) return ring
    await keeper.change(plan, null, context)
    return keeper.fresh ?? ring
  }

  /** The keys of the service that signed credentials of the tenant which have not ended. */
  async function formerKeys(tenantId: string) {
    const last = await lastSigned.get(tenantId, [tenantId], () =>
      database.tenant(tenantId, (tx) => lastOfServiceKey(tx, tenantId, clock.now())),
    )
    if (last === null) return []
    const rows = (await service.forVerifying())?.rows ?? []
    return rows.filter(
      ({ algorithm, currentSince }) =>
        CREDENTIAL_USE.algorithms.includes(algorithm) &&
        currentSince !== null &&
        currentSince <= last,
    )
  }

  function signed(
    ring: Ring | undefined,
    algorithm: SigningAlgorithm,
    { typ, claims }: Omit<SignClaims, 'algorithm'>,
  ): Signed | KeysUnavailable {
    const signer = ring?.signers.get(algorithm)
    if (signer === undefined) return UNAVAILABLE
    return { tag: 'signed', token: signer.sign(typ, claims), kid: signer.key.kid, algorithm }
  }

  const handlers: Pick<
    Handlers<SigningKeysProtocol>,
    'signForTenant' | 'tenantKeySet' | 'signSecurityEvent' | 'securityEventKeySet'
  > = {
    async signForTenant({ tenantId, ...token }, context) {
      return signed(await ringOf(tenantId, context), 'ES256', token)
    },
    async signSecurityEvent(token, context) {
      return signed(await ringOf(SECURITY_EVENTS, context, SECURITY_EVENT_USE), 'RS256', token)
    },
    async securityEventKeySet(_, context) {
      const ring = await ringOf(SECURITY_EVENTS, context, SECURITY_EVENT_USE)
      return ring?.keySet ?? UNAVAILABLE
    },
    async tenantKeySet({ tenantId }, context) {
      const ring = await ringOf(tenantId, context)
      if (ring === undefined) return UNAVAILABLE
      const now = clock.now()
      const own = ring.rows.filter((row) => isPublished(row, now))
      return keySetOf([...own, ...(await formerKeys(tenantId))])
    },
  }
  const expire = () => {
    for (const keeper of keepers.values()) keeper.expire()
  }
  return { handlers, expire }
}
