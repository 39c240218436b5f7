/** Directories, organizations, the audit log and webhooks. */
import { consoleSessionsActor } from '../../../actors/identity/console-sessions/actor.js'
import { createSender } from '../../../actors/webhooks/delivery/sender.js'
import { auditActor } from '../../../actors/operations/audit/actor.js'
import { egressCallsActor } from '../../../actors/vault/egress-calls/actor.js'
import { organizationsActor } from '../../../actors/identity/users/organizations/actor.js'
import { pow } from '../../../actors/agents/proof-of-work/protocol.js'
import { agentManagementActor } from '../../../actors/agents/agents/management/actor.js'
import { scimActor } from '../../../actors/identity/scim/actor.js'
import { scimGroupsActor } from '../../../actors/identity/scim/groups/actor.js'
import { tenants } from '../../../actors/identity/users/tenants/protocol.js'
import { tokens } from '../../../actors/oauth/tokens/protocol.js'
import { eventTypesOf } from '../configuration/feature-details.js'
import { webhookSignerActor } from '../../../actors/webhooks/signer/actor.js'
import { webhookSigner } from '../../../actors/webhooks/signer/protocol.js'
import { webhooksActor } from '../../../actors/webhooks/subscriptions/actor.js'
import { signalsActor } from '../../../actors/webhooks/signals/actor.js'
import { signingKeys } from '../../../actors/oauth/signing-keys/protocol.js'
import { type ActorWiring, wireActor } from '../../kernel/wiring.js'
import { senderSettingsOf } from './egress-settings.js'
import type { SharedNeeds } from './shared-needs.js'

/** The actors of this file, with their dependencies. */
export function directoryWirings(shared: SharedNeeds): readonly ActorWiring[] {
  const {
    settings,
    database,
    sealer,
    clock,
    random,
    metrics,
    webhooks,
    issuer,
    mailQueue,
    groups,
    common,
    documentation,
  } = shared
  return [
    wireActor(scimActor, ({ ref }) => ({
      ...common,
      tokens: ref(tokens),
      mail: mailQueue,
      invitations: settings.invitations,
      issuer,
      documentation,
      maxResults: settings.scim.max_results,
      groups: settings.scim.groups_enabled,
    })),
    wireActor(scimGroupsActor, ({ ref }) => ({
      ...common,
      tokens: ref(tokens),
      issuer,
      maxResults: settings.scim.max_results,
    })),
    wireActor(consoleSessionsActor, () => ({ ...common, sealer })),
    wireActor(auditActor, () => ({ database, clock })),
    wireActor(egressCallsActor, () => ({
      database,
      clock,
      streamSecs: settings.vault.egress_calls_stream_secs,
      groups,
      shares: metrics.shares,
    })),
    wireActor(agentManagementActor, ({ ref }) => ({
      database,
      clock,
      random,
      pow: ref(pow),
      tokens: ref(tokens),
      issuer,
    })),
    wireActor(organizationsActor, ({ ref }) => ({
      ...common,
      tenants: ref(tenants),
      tokens: ref(tokens),
      limits: settings.organizations,
    })),
    wireActor(webhookSignerActor, () => ({ sealer, clock })),
    wireActor(signalsActor, ({ ref }) => ({
      ...common,
      listener: database.listener,
      keys: ref(signingKeys),
      issuer,
      sealer,
      urlRules: {
        nonStandardPorts: settings.vault.egress_allow_non_standard_ports,
        privateNetworks: settings.vault.egress_allow_private_networks,
      },
      settings: settings.shared_signals,
      groups,
      shares: metrics.shares,
    })),
    wireActor(webhooksActor, ({ onStop, ref }) => {
      const sending = senderSettingsOf(settings)
      const sender = createSender({ settings: sending, clock, groups })
      onStop(() => sender.close())
      return {
        ...common,
        sealer,
        sender,
        signer: ref(webhookSigner),
        shares: metrics.shares,
        groups,
        urlRules: {
          nonStandardPorts: sending.nonStandardPorts,
          privateNetworks: webhooks.allow_private_networks,
        },
        offered: eventTypesOf(settings),
        subscriptionsMax: webhooks.max_subscriptions_per_tenant,
        attempts: webhooks.retry_schedule_secs.length,
        retentionDays: webhooks.delivery_retention_days,
      }
    }),
  ]
}
