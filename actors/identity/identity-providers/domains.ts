/**
 * Domains of an organization, verified by a DNS TXT record. A domain belongs to the organization that verified it
 * first. Each of its tenants configures its own routing.
 */
import type { MessageContext } from '../../../runtime/kernel/actor.js'
import { inPlace } from '../../../runtime/kernel/fairness/fair-share.js'
import { findIdentityProvider } from '../../../storage/identity/identity-providers.js'
import { findTenant } from '../../../storage/identity/tenants.js'
import {
  claimDomain,
  deleteVerifiedDomain,
  findVerifiedDomain,
  insertVerifiedDomain,
  listVerifiedDomains,
  verifyDomainRow,
  updateVerifiedDomain,
  type VerifiedDomainRow,
} from '../../../storage/identity/verified-domains.js'
import { idempotently, kept } from '../../../storage/platform/idempotency.js'
import type { Transaction } from '../../../storage/platform/sql.js'
import { isUuid } from '../../domain/ids.js'
import { listOf } from '../../platform/paging.js'
import { recordAudit } from '../../platform/record-audit.js'
import { readDomain } from '../../platform/mail/public-domains.js'
import type { Handling, IdentityProvidersTools } from './needs.js'
import type { CreateDomain, DomainRecord, Invalid } from './protocol.js'
import { inTenant } from '../../platform/in-tenant.js'

const UNKNOWN = { tag: 'unknown' } as const
const OFF = { tag: 'off' } as const
const NO_ORGANIZATION = { tag: 'no_organization' } as const
const PROOF_BYTES = 24
const LABEL = '_svc-challenge'
const PROOF_PREFIX = 'svc-domain-verification='

export const listDomains: Handling<'listDomains'> = async (needs, message, context) =>
  needs.domains.enabled
    ? listOf(needs, message.tenantId, message, context, {
        list: listVerifiedDomains,
        show: recordOf,
      })
    : OFF

export const createDomain: Handling<'createDomain'> = async (needs, message, context) => {
  if (!needs.domains.enabled) return OFF
  const domain = readDomain(message.domain)
  if (domain === undefined)
    return { tag: 'invalid', pointer: '/domain', detail: 'This is not a public domain name.' }
  const { tenantId } = message.caller.principal
  return inTenant(needs.database, tenantId, context, async (tx) => {
    const tenant = await findTenant(tx, tenantId)
    if (tenant?.organizationId == null) return NO_ORGANIZATION
    const fault = await providerFault(tx, tenantId, message.ssoProviderId)
    if (fault !== undefined) return fault
    return idempotently(
      tx,
      message.idempotency,
      () => insert(tx, needs, message, domain, context),
      kept('created'),
    )
  })
}

async function insert(
  tx: Transaction,
  needs: IdentityProvidersTools,
  { caller, ssoProviderId, autoJoin }: CreateDomain,
  domain: string,
  context: MessageContext,
) {
  const { clock, random, domains } = needs
  const { tenantId } = caller.principal
  const named = { tenantId, id: random.uuid(), domain, proof: random.token(PROOF_BYTES) }
  const row = { ...named, ssoProviderId, autoJoin, createdAt: clock.now() }
  const most = domains.max_per_tenant
  const inserted = await insertVerifiedDomain(tx, row, most)
  if (inserted === 'full') return { tag: 'full', most } as const
  if (inserted === 'present') return { tag: 'present' } as const
  recordAudit(tx, needs, caller, context, domainChange('added', row))
  return {
    tag: 'created',
    domain: recordOf({ ...row, verifiedAt: null }),
    replayed: false,
  } as const
}

export const getDomain: Handling<'getDomain'> = async (
  { database, domains },
  { tenantId, id },
  context,
) => {
  if (!domains.enabled) return OFF
  if (!isUuid(id)) return UNKNOWN
  const row = await inTenant(database, tenantId, context, (tx) =>
    findVerifiedDomain(tx, tenantId, id),
  )
  return row === undefined ? UNKNOWN : { tag: 'found', domain: recordOf(row) }
}

export const updateDomain: Handling<'updateDomain'> = async (
  needs,
  { caller, id, change },
  context,
) => {
  if (!needs.domains.enabled) return OFF
  if (!isUuid(id)) return UNKNOWN
  const { tenantId } = caller.principal
  return inTenant(needs.database, tenantId, context, async (tx) => {
    const fault = await providerFault(tx, tenantId, change.ssoProviderId)
    if (fault !== undefined) return fault
    const row = await updateVerifiedDomain(tx, tenantId, id, change)
    if (row === undefined) return UNKNOWN
    recordAudit(tx, needs, caller, context, domainChange('changed', row))
    return { tag: 'found', domain: recordOf(row) }
  })
}

export const verifyDomain: Handling<'verifyDomain'> = async (needs, { caller, id }, context) => {
  const { database, clock, groups, lookUps, txt } = needs
  const { tenantId } = caller.principal
  const named = await getDomain(needs, { tenantId, id }, context)
  if (named.tag !== 'found') return named
  const { proof, domain, verifiedAt } = named.domain
  const of = await groups.of(tenantId)
  const texts = await inPlace(lookUps, tenantId, of, null, () => txt(proof.name))
  if (texts === null) return { tag: 'resolver_silent' }
  if (!texts.includes(proof.value)) return { tag: 'proof_missing', proof }
  const now = clock.now()
  // Domain ownership is decided across all organizations.
  const verified = database.system(async (tx) => {
    const tenant = await findTenant(tx, tenantId)
    if (tenant?.organizationId == null) return NO_ORGANIZATION
    const isOurs = await claimDomain(tx, domain, tenant.organizationId, now)
    if (!isOurs) return { tag: 'taken' } as const
    const row = await verifyDomainRow(tx, tenantId, id, now)
    if (row === undefined) throw new DomainGone()
    if (verifiedAt === null) recordAudit(tx, needs, caller, context, domainChange('verified', row))
    return { tag: 'found', domain: recordOf(row) } as const
  }, context)
  return verified.catch((error: unknown) => {
    if (error instanceof DomainGone) return UNKNOWN
    throw error
  })
}

/** Rolls back a claim: the domain was deleted during the DNS query. */
class DomainGone extends Error {
  override readonly name = 'DomainGone'
}

export const deleteDomain: Handling<'deleteDomain'> = async (needs, { caller, id }, context) => {
  if (!needs.domains.enabled) return OFF
  if (!isUuid(id)) return UNKNOWN
  return needs.database.system(async (tx) => {
    const domain = await deleteVerifiedDomain(tx, caller.principal.tenantId, id)
    if (domain === undefined) return UNKNOWN
    recordAudit(tx, needs, caller, context, domainChange('removed', { id, domain }))
    return { tag: 'deleted' }
  }, context)
}

const domainChange = (
  did: 'added' | 'changed' | 'verified' | 'removed',
  { id, domain }: Pick<VerifiedDomainRow, 'id' | 'domain'>,
) => ({
  type: `org.domain.${did}` as const,
  resource: { type: 'verified_domain', id },
  data: { domain },
})

async function providerFault(
  tx: Transaction,
  tenantId: string,
  id: string | null | undefined,
): Promise<Invalid | undefined> {
  if (id === null || id === undefined) return undefined
  const known = isUuid(id) && (await findIdentityProvider(tx, tenantId, id)) !== undefined
  return known
    ? undefined
    : { tag: 'invalid', pointer: '/sso_provider_id', detail: 'There is no such provider.' }
}

function recordOf({ proof, ...rest }: VerifiedDomainRow): DomainRecord {
  return { ...rest, proof: { name: `${LABEL}.${rest.domain}`, value: PROOF_PREFIX + proof } }
}
