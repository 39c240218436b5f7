/** The egress proxy, on its own thread, so that unsealed secrets stay on that thread. */
import { defineActor } from '../../../runtime/kernel/actor.js'
import type { Clock } from '../../../runtime/kernel/clock.js'
import type { Random } from '../../../runtime/kernel/random.js'
import type { ShareCounts } from '../../../runtime/kernel/fairness/fair-share.js'
import type { Sealer } from '../../../storage/platform/sealing/sealer.js'
import type { Database } from '../../../storage/platform/sql.js'
import type { ManagedTokens } from '../vault/protocol.js'
import type { Admission } from './admission/admission.js'
import type { EgressMetrics } from './metrics.js'
import { egress, type EgressProtocol } from './protocol.js'
import { createCredentialCache } from './inject/unsealed-credential.js'
import { type EgressSettings, outbound } from '../../platform/outbound-http/outbound.js'
import { agentSignatureKey } from '../../platform/agent-signature-keys.js'
import { createProxy, type ProxyNeeds } from './proxy.js'
import { createSignRequest } from './sign-request.js'
import { keepCallLimitAnnounced } from './admission/lost-calls.js'
import { CALLS_MAX, createEgressShares, HeldBytes, type ShareSettings } from './admission/shares.js'
import { TenantGroups } from '../../platform/tenant-groups.js'
import { createUpstreams } from '../../platform/outbound-http/upstreams.js'
import { createAssumedRoles } from './sign/aws/assumed-role.js'
import { createSigners } from './sign/signers.js'
import { createRevocationWatch } from './admission/revocation-watch.js'

const STS_CONNECT_MS_MAX = 3_000
const STS_ORIGINS_MAX = 64

type CallSettings = Readonly<
  Record<
    | 'egress_idle_gap_secs'
    | 'egress_hop_timeout_secs'
    | 'egress_head_timeout_secs'
    | 'egress_buffered_timeout_secs'
    | 'egress_body_max_bytes'
    | 'egress_buffered_response_max_bytes',
    number
  >
>

type EgressNeeds = {
  readonly database: Database
  readonly sealer: Sealer
  readonly admission: Admission
  /** Access tokens of oauth2 credentials. */
  readonly managed: ManagedTokens
  readonly clock: Clock
  readonly random: Random
  readonly issuer: string
  readonly metrics: EgressMetrics
  readonly counts: ShareCounts
  readonly settings: CallSettings & ShareSettings & EgressSettings
}

export const egressActor = defineActor<EgressProtocol, EgressNeeds>({
  address: egress,
  asks: {},
  // More than calls, so that a call without a place is refused and does not wait.
  mailbox: { capacity: 1024, inflightMax: 2 * CALLS_MAX },
  supervision: { onFailure: 'resume' },
  create: (
    { database, sealer, admission, managed, clock, random, issuer, metrics, counts, settings },
    lifecycle,
  ) => {
    const groups = new TenantGroups({ database, clock })
    const { dialer, rules } = outbound(settings, { http2: true, sharedReads: true, counts, groups })
    const shares = createEgressShares(settings, counts)
    const memoryOf = (tenantId: string, giveUp?: () => boolean) =>
      new HeldBytes(shares.bytes, tenantId, groups.known(tenantId), giveUp)
    const upstreams = createUpstreams(dialer, undefined, { http2: true })
    const revocationWatch = createRevocationWatch({ database, clock, log: lifecycle.log })
    const credentialCache = createCredentialCache(sealer, clock, managed, memoryOf)
    const sts = outbound(settings, { connectTimeoutMs: STS_CONNECT_MS_MAX, counts, groups })
    const stsUpstreams = createUpstreams(sts.dialer, STS_ORIGINS_MAX)
    const roles = createAssumedRoles({ upstreams: stsUpstreams, rules, clock })
    const limits = {
      idleGapMs: settings.egress_idle_gap_secs * 1000,
      hopTimeoutMs: settings.egress_hop_timeout_secs * 1000,
    }
    const { hopTimeoutMs } = limits
    keepCallLimitAnnounced({ database, hopTimeoutMs, log: lifecycle.log, signal: lifecycle.signal })
    lifecycle.signal.addEventListener(
      'abort',
      () => {
        revocationWatch.stop()
        void upstreams.destroy()
        void stsUpstreams.destroy()
      },
      { once: true },
    )
    const proxyNeeds: ProxyNeeds = {
      admission,
      revocationWatch,
      upstreams,
      credentialCache,
      signers: createSigners({
        random,
        roles,
        httpSigning: {
          issuer,
          keyOf: (agentId) => agentSignatureKey({ database, sealer, clock }, agentId),
        },
      }),
      managed,
      clock,
      metrics,
      rules,
      limits: { ...limits, headTimeoutMs: settings.egress_head_timeout_secs * 1000 },
      bufferedLimits: {
        ...limits,
        hopTimeoutMs: Math.min(hopTimeoutMs, settings.egress_buffered_timeout_secs * 1000),
      },
      calls: shares.calls,
      groups,
      memoryOf,
      bodyBytesMax: settings.egress_body_max_bytes,
      bufferedBytesMax: settings.egress_buffered_response_max_bytes,
    }
    return {
      async forget({ tenantId }) {
        admission.forget(tenantId)
        credentialCache.forget(tenantId)
        roles.forget(tenantId)
        return { tag: 'forgotten' }
      },
      // Also the operation `proxyRequestBody`.
      proxyRequest: createProxy(proxyNeeds),
      signRequest: createSignRequest(proxyNeeds),
    }
  },
})
