/**
 * Domains of an organization, verified by a DNS TXT record. A domain belongs to the organization that verified it
 * first. Each of its tenants configures its own routing.
 */
import type { Handlers } from '../../../runtime/kernel/actor.js'
import { FairShare, inPlace } from '../../../runtime/kernel/fairness/fair-share.js'
import { appendAudit } from '../../../storage/operations/audit.js'
import { idempotently } from '../../../storage/platform/idempotency.js'
import { findIdentityProvider } from '../../../storage/identity/identity-providers.js'
import type { Transaction } from '../../../storage/platform/sql.js'
import { findTenant } from '../../../storage/identity/tenants.js'
import {
  claimDomain,
  deleteVerifiedDomain,
  findVerifiedDomain,
  insertVerifiedDomain,
  listVerifiedDomains,
  markDomainVerified,
  updateVerifiedDomain,
  type VerifiedDomainRow,
} from '../../../storage/identity/verified-domains.js'
import { type AuditOnlyType, audited, type Caller } from '../../domain/audit.js'
import { isUuid } from '../../domain/ids.js'
import { page } from '../../platform/paging.js'
import { readDomain } from '../federated-login/rules.js'
import type { IdentityProvidersNeeds } from './needs.js'
import type { DomainRecord, IdentityProvidersProtocol, Invalid } from './protocol.js'

const UNKNOWN = { tag: 'unknown' } as const
const OFF = { tag: 'off' } as const
/** Proofs that are looked up at the same time. Name servers that never answer hold so many of the actor's places. */
const LOOK_UPS_MAX = 32
const LOOK_UPS_PER_TENANT_MAX = 2
const PROOF_BYTES = 24
const LABEL = '_svc-challenge'
const PROOF_PREFIX = 'svc-domain-verification='

export function domainSteps(
  needs: IdentityProvidersNeeds,
): Pick<
  Handlers<IdentityProvidersProtocol>,
  'listDomains' | 'createDomain' | 'getDomain' | 'updateDomain' | 'verifyDomain' | 'deleteDomain'
> {
  const { database, clock, random, domains: settings, txt, groups, counts } = needs
  const levels = [{ name: 'tenant', max: LOOK_UPS_PER_TENANT_MAX }]
  const lookUps = new FairShare({ resource: 'domain_proofs', total: LOOK_UPS_MAX, levels, counts })

  const domainAudit = (
    caller: Caller,
    type: AuditOnlyType,
    { id, domain }: Pick<VerifiedDomainRow, 'id' | 'domain'>,
    now: Date,
    requestId: string | undefined,
  ) =>
    audited(caller, {
      id: random.uuid(),
      tenantId: caller.principal.tenantId,
      type,
      occurredAt: now,
      resource: { type: 'verified_domain', id },
      requestId,
      data: { domain },
    })

  async function providerFault(
    tx: Transaction,
    tenantId: string,
    id: string | null | undefined,
  ): Promise<Invalid | null> {
    if (id === null || id === undefined) return null
    const known = isUuid(id) && (await findIdentityProvider(tx, tenantId, id)) !== undefined
    return known
      ? null
      : { tag: 'invalid', pointer: '/sso_provider_id', detail: 'There is no such provider.' }
  }

  return {
    async listDomains({ tenantId, limit, after }, { signal }) {
      if (!settings.enabled) return OFF
      const rows = await database.tenant(
        tenantId,
        (tx) => listVerifiedDomains(tx, tenantId, limit + 1, after),
        { signal },
      )
      const { items, next } = page(rows, limit)
      return { tag: 'listed', domains: items.map(recordOf), next }
    },

    async createDomain({ caller, idempotency, autoJoin, ...draft }, { signal, requestId }) {
      if (!settings.enabled) return OFF
      const domain = readDomain(draft.domain)
      if (domain === undefined) {
        return { tag: 'invalid', pointer: '/domain', detail: 'This is not a public domain name.' }
      }
      const { tenantId } = caller.principal
      const now = clock.now()
      return database.tenant(
        tenantId,
        async (tx) => {
          const tenant = await findTenant(tx, tenantId)
          if (tenant?.organizationId == null) return { tag: 'no_organization' } as const
          const fault = await providerFault(tx, tenantId, draft.ssoProviderId)
          if (fault !== null) return fault
          return idempotently(
            tx,
            idempotency,
            async () => {
              const row = {
                tenantId,
                id: random.uuid(),
                domain,
                proof: random.token(PROOF_BYTES),
                ssoProviderId: draft.ssoProviderId,
                autoJoin,
                createdAt: now,
              }
              const most = settings.max_per_tenant
              const inserted = await insertVerifiedDomain(tx, row, most)
              if (inserted === 'full') return { tag: 'full', most } as const
              if (inserted === 'present') return { tag: 'present' } as const
              appendAudit(tx, [domainAudit(caller, 'org.domain.added', row, now, requestId)])
              const record = recordOf({ ...row, verifiedAt: null })
              return { tag: 'created', domain: record, replayed: false } as const
            },
            (outcome) => (outcome.tag === 'created' ? outcome : undefined),
          )
        },
        { signal },
      )
    },

    async getDomain({ tenantId, id }, { signal }) {
      if (!settings.enabled) return OFF
      if (!isUuid(id)) return UNKNOWN
      const row = await database.tenant(tenantId, (tx) => findVerifiedDomain(tx, tenantId, id), {
        signal,
      })
      return row === undefined ? UNKNOWN : { tag: 'found', domain: recordOf(row) }
    },

    async updateDomain({ caller, id, change }, { signal, requestId }) {
      if (!settings.enabled) return OFF
      if (!isUuid(id)) return UNKNOWN
      const { tenantId } = caller.principal
      const now = clock.now()
      return database.tenant(
        tenantId,
        async (tx) => {
          const fault = await providerFault(tx, tenantId, change.ssoProviderId)
          if (fault !== null) return fault
          const row = await updateVerifiedDomain(tx, tenantId, id, change)
          if (row === undefined) return UNKNOWN
          appendAudit(tx, [domainAudit(caller, 'org.domain.changed', row, now, requestId)])
          return { tag: 'found', domain: recordOf(row) } as const
        },
        { signal },
      )
    },

    async verifyDomain({ caller, id }, { signal, requestId }) {
      if (!settings.enabled) return OFF
      if (!isUuid(id)) return UNKNOWN
      const { tenantId } = caller.principal
      const row = await database.tenant(tenantId, (tx) => findVerifiedDomain(tx, tenantId, id), {
        signal,
      })
      if (row === undefined) return UNKNOWN
      const { proof } = recordOf(row)
      const of = await groups.of(tenantId)
      const texts = await inPlace(lookUps, tenantId, of, null, () => txt(proof.name))
      if (texts === null) return { tag: 'resolver_silent' }
      if (!texts.includes(proof.value)) return { tag: 'proof_missing', proof }
      const now = clock.now()
      // Domain ownership is decided across all organizations.
      return database
        .system(
          async (tx) => {
            const tenant = await findTenant(tx, tenantId)
            if (tenant?.organizationId == null) return { tag: 'no_organization' } as const
            const isOurs = await claimDomain(tx, row.domain, tenant.organizationId, now)
            if (!isOurs) return { tag: 'taken' } as const
            const verified = await markDomainVerified(tx, tenantId, id, now)
            if (verified === undefined) throw new DomainGone()
            if (row.verifiedAt === null) {
              appendAudit(tx, [domainAudit(caller, 'org.domain.verified', row, now, requestId)])
            }
            return { tag: 'found', domain: recordOf(verified) } as const
          },
          { signal },
        )
        .catch((error: unknown) => {
          if (error instanceof DomainGone) return UNKNOWN
          throw error
        })
    },

    async deleteDomain({ caller, id }, { signal, requestId }) {
      if (!settings.enabled) return OFF
      if (!isUuid(id)) return UNKNOWN
      const { tenantId } = caller.principal
      return database.system(
        async (tx) => {
          const domain = await deleteVerifiedDomain(tx, tenantId, id)
          if (domain === undefined) return UNKNOWN
          const now = clock.now()
          const gone = { id, domain }
          appendAudit(tx, [domainAudit(caller, 'org.domain.removed', gone, now, requestId)])
          return { tag: 'deleted' } as const
        },
        { signal },
      )
    },
  }
}

/** Rolls back a claim: the domain was deleted during the DNS query. */
class DomainGone extends Error {
  override readonly name = 'DomainGone'
}

function recordOf(row: VerifiedDomainRow): DomainRecord {
  const { proof, ...rest } = row
  return { ...rest, proof: { name: `${LABEL}.${row.domain}`, value: PROOF_PREFIX + proof } }
}
