/** Workers, the vault and commerce. */
import { pooled, processors } from './pools.js'
import { hasSinks } from '../../../actors/webhooks/event-sinks/settings.js'
import { eventSinksWorker, sinksOf } from '../../../actors/webhooks/event-sinks/worker.js'
import { createPoster } from '../../../actors/platform/outbound-http/poster.js'
import { logoutWorker } from '../../../actors/oauth/logout/worker.js'
import { signalsWorker } from '../../../actors/webhooks/signals/worker.js'
import { signingKeys } from '../../../actors/oauth/signing-keys/protocol.js'
import { mailWorker } from '../../../actors/operations/mail/worker.js'
import { approvalsActor } from '../../../actors/vault/approvals/actor.js'
import { approvalsWorker } from '../../../actors/vault/approvals/worker.js'
import { browserSessions } from '../../../actors/identity/sign-in/sessions/protocol.js'
import { sshCertificatesActor } from '../../../actors/vault/ssh-certificates/actor.js'
import { sshCertificatesMetrics } from '../../../actors/vault/ssh-certificates/metrics.js'
import { sshCertificatesPool } from '../../../actors/vault/ssh-certificates/needs.js'
import { sshCertificates } from '../../../actors/vault/ssh-certificates/protocol.js'
import { type ImageModule, imagePool } from '../../../actors/identity/tenant-assets/pool.js'
import {
  closeLostCalls,
  recordUnknownCalls,
} from '../../../actors/vault/egress/admission/lost-calls.js'
import { registryMetrics } from '../../../actors/agents/agents/registries/metrics.js'
import { registriesWorker } from '../../../actors/agents/agents/registries/worker.js'
import { retentionWorker } from '../../../actors/operations/retention/worker.js'
import { sequencerWorker } from '../../../actors/operations/sequencer/worker.js'
import { tendingOf } from '../../../actors/vault/vault/connections/upkeep.js'
import type { connectionEnding } from './connections.js'
import { vaultActor } from '../../../actors/vault/vault/actor.js'
import { reconciliationWorker } from '../../../actors/commerce/payments/reconciliation/worker.js'
import { x402Actor, x402Pool } from '../../../actors/commerce/payments/x402/actor.js'
import type { X402Module } from '../../../actors/commerce/payments/x402/needs.js'
import { commerceWirings, walletWiring } from './commerce.js'
import { type ActorWiring, untilSettled, wireActor } from '../../kernel/wiring.js'
import { targetRules } from '../../../actors/platform/outbound-http/outbound.js'
import { faultsUnder } from '../../../actors/platform/outbound-http/targets.js'
import { egressSettingsOf } from './egress-settings.js'
import { openRegistries } from './chain-nodes.js'
import { reconciliationNeeds, x402Needs } from './payment-chains.js'
import { mailRunnerOf } from './mail.js'
import { assetRetirementOf, tenantAssetWirings } from './tenant-assets.js'
import { resealOf } from './vault.js'
import type { SharedNeeds } from './shared-needs.js'

/** The actors of this file, with their dependencies. */
export function workerWirings(
  shared: SharedNeeds,
  ending: ReturnType<typeof connectionEnding>,
): readonly ActorWiring[] {
  const { resources, settings, database, sealer, clock, random, webhooks, registry } = shared
  return [
    wireActor(sequencerWorker, (context) => {
      const isSent = hasSinks(settings.event_sinks)
      return { database, clock, registry, hasSinks: isSent, settled: untilSettled(context) }
    }),
    wireActor(eventSinksWorker, (context) => {
      const sinks = sinksOf(settings.event_sinks)
      return { database, clock, random, registry, sinks, settled: untilSettled(context) }
    }),
    wireActor(logoutWorker, (context) => ({
      database,
      clock,
      random,
      registry,
      keys: context.ref(signingKeys),
      poster: createPoster({ settings: egressSettingsOf(settings), groups: shared.groups }),
      issuer: shared.issuer,
      settings: settings.logout,
      shares: resources.metrics.shares,
      settled: untilSettled(context),
    })),
    wireActor(signalsWorker, (context) => ({
      database,
      clock,
      keys: context.ref(signingKeys),
      sealer,
      poster: createPoster({ settings: egressSettingsOf(settings), groups: shared.groups }),
      settings: settings.shared_signals,
      shares: resources.metrics.shares,
      random,
      registry,
      issuer: shared.issuer,
      settled: untilSettled(context),
    })),
    wireActor(mailWorker, ({ onStop }) => {
      const runner = mailRunnerOf(resources)
      onStop(() => runner.settled())
      return { runner }
    }),
    wireActor(approvalsWorker, () => ({
      database,
      listener: database.listener,
      clock,
      random,
      mail: shared.mailQueue,
      issuer: shared.issuer,
    })),
    wireActor(approvalsActor, (context) => ({
      database,
      clock,
      random,
      browserSessions: context.ref(browserSessions),
      ttlSecs: settings.vault.approval_ttl_secs,
    })),
    wireActor(sshCertificatesActor, (context) => ({
      database,
      sealer,
      compute: pooled(context, resources, sshCertificatesPool(processors(context))),
      clock,
      random,
      metrics: sshCertificatesMetrics(registry),
      settings: settings.vault,
    })),
    wireActor(vaultActor, (context) => ({
      ...ending(context),
      sshCertificates: context.ref(sshCertificates),
      urlFaultOf: faultsUnder(targetRules(settings.vault)),
      settings: settings.vault,
    })),
    ...commerceWirings(resources),
    wireActor(x402Actor, (context) => {
      const compute = pooled<X402Module>(context, resources, x402Pool(processors(context)))
      return x402Needs(resources, compute, context.onStop)
    }),
    walletWiring(resources),
    wireActor(registriesWorker, ({ onStop }) => {
      const { value: registries, close } = openRegistries(settings)
      onStop(close)
      return { database, clock, random, registries, metrics: registryMetrics(registry) }
    }),
    wireActor(reconciliationWorker, ({ onStop }) => reconciliationNeeds(resources, onStop)),
    ...tenantAssetWirings(resources, (context) =>
      pooled<ImageModule>(context, resources, imagePool(processors(context))),
    ),
    wireActor(retentionWorker, (context) => ({
      database,
      keys: context.ref(signingKeys),
      clock,
      registry,
      reseal: resealOf(resources),
      closeLostCalls: (signal) => closeLostCalls(resources, signal),
      tendConnections: tendingOf(ending(context), resources.log),
      recordUnknownCalls: (signal) => recordUnknownCalls(resources, signal),
      removeRetiredAssets: assetRetirementOf(resources, context.onStop),
      random,
      retention: {
        ...webhooks,
        ...settings.commerce,
        guest_retention_secs: settings.anonymous.retention_secs,
      },
    })),
  ]
}
