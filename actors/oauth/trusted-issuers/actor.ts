/** Issuers that a tenant trusts, the rules for their tokens, and the admission of a token. */
import { boundHandlers, defineActor } from '../../../runtime/kernel/actor.js'
import { isIssuerTaken, trustedIssuerTable } from '../../../storage/oauth/trusted-issuers.js'
import {
  type TrustedIssuer,
  trustedIssuer,
  type TrustedIssuerMembers,
} from '../../domain/entities/trusted-issuer.js'
import { atMostEvery } from '../../../runtime/kernel/fairness/at-most-every.js'
import { isUuid } from '../../domain/ids.js'
import { tenants } from '../../identity/users/tenants/protocol.js'
import { ttlCache } from '../../platform/batching/ttl-cache.js'
import { entityHandlers } from '../../platform/entity-handlers.js'
import { inTenant } from '../../platform/in-tenant.js'
import { admitAssertion, evaluateTrustedIssuerToken } from './admit.js'
import { admitIdentityAssertion } from './admit-person.js'
import { issuerKeys } from './issuer-keys.js'
import {
  createTrustedIssuerRule,
  deleteTrustedIssuerRule,
  listTrustedIssuerRules,
} from './issuer-rules.js'
import { changeFault, domainsFault, draftFault } from './issuer-draft.js'
import { receiveIssuerEvent } from './security-events.js'
import { endAssertedTokens, recordAssertedToken } from './sign-out.js'
import type { TrustedIssuersNeeds, TrustedIssuerTools } from './needs.js'
import { type IssuerRefused, trustedIssuers, type TrustedIssuersProtocol } from './protocol.js'

const ISSUERS_MAX = 100
/** Each can have a key set of 64 KiB. */
const PAGE_MAX = 20
const LOOK_AGAIN_MS = 100
const RECORD_MS = 60_000

export const trustedIssuersActor = defineActor<TrustedIssuersProtocol, TrustedIssuersNeeds>({
  address: trustedIssuers,
  asks: { tenants },
  mailbox: { capacity: 4096, inflightMax: 512 },
  // The actor has no state that a restart would repair.
  supervision: { onFailure: 'resume' },
  create(needs) {
    const known = ttlCache<readonly TrustedIssuer[]>(needs.clock)
    const entityOf = entityHandlers<TrustedIssuerMembers, IssuerRefused>(needs, {
      entity: trustedIssuer,
      table: trustedIssuerTable,
      most: ISSUERS_MAX,
      pageMax: PAGE_MAX,
      faultOf: (draft) => draftFault(draft, needs),
      foreignFault: async (change, { principal }, context, id) => {
        const { tenantId } = principal
        const fault =
          id === null || !isUuid(id)
            ? undefined
            : await inTenant(needs.database, tenantId, context, (tx) =>
                changeFault(tx, principal, id, change),
              )
        return fault ?? domainsFault(needs, change.emailDomains ?? [], tenantId, context)
      },
      isConflict: (error) => isIssuerTaken(error),
      auditOf: ({ issuer, name }) => ({ issuer, name }),
      powersOf: ({ purposes, kind, status, subjectMapping, emailDomains }) => ({
        purposes,
        kind,
        status,
        ...(subjectMapping && { subject_mapping: subjectMapping, email_domains: emailDomains }),
      }),
      changed: (tenantId) => known.invalidate([tenantId]),
    })
    const others = boundHandlers<
      Omit<TrustedIssuersProtocol, keyof EntityMessages>,
      TrustedIssuerTools
    >(
      {
        listTrustedIssuerRules,
        createTrustedIssuerRule,
        deleteTrustedIssuerRule,
        evaluateTrustedIssuerToken,
        admitAssertion,
        admitIdentityAssertion,
        recordAssertedToken,
        endAssertedTokens,
        receiveIssuerEvent,
      },
      {
        ...needs,
        known,
        mayLookAgain: atMostEvery(LOOK_AGAIN_MS, needs.clock),
        mayRecord: atMostEvery(RECORD_MS, needs.clock),
        keys: issuerKeys(needs.documents, needs.clock),
      },
    )
    return { ...entityOf, ...others }
  },
})

type EntityMessages = { list: 0; read: 0; create: 0; update: 0; remove: 0 }
