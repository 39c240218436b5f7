/** Serves the documents of agents, and lets an agent change what they say. */
import { defineActor } from '../../../../runtime/kernel/actor.js'
import { findAgentProfile, replaceAgentProfile } from '../../../../storage/agents/agent-profiles.js'
import type { Sealer } from '../../../../storage/platform/sealing/sealer.js'
import { sealedSignatureKey, signatureJwk } from '../../../platform/agent-signature-keys.js'
import { directoryOf } from './directory.js'
import { holdAgent } from '../../../../storage/agents/agent-management.js'
import {
  agentCard,
  agentClientDocument,
  agentDocumentUrl,
  agentKeySet,
  type AgentProfile,
  CLIENT_DOCUMENT_BYTES_MAX,
} from '../../../domain/agents/documents.js'
import { recordAudit } from '../../../platform/record-audit.js'
import { httpsUrl, PAGE } from '../../../domain/entities/https-url.js'
import { isUuid } from '../../../domain/ids.js'
import { redirectUriFault } from '../../../domain/redirect-uri.js'
import {
  type AgentDocumentsProtocol,
  type AgentProfileChange,
  agentDocuments,
  type ProfileInvalid,
} from './protocol.js'
import type { WriteNeeds } from '../../../platform/write-needs.js'

const UNKNOWN_AGENT = { tag: 'unknown_agent' } as const

type AgentDocumentsNeeds = WriteNeeds & {
  readonly issuer: string
  readonly sealer: Sealer
}

export const agentDocumentsActor = defineActor<AgentDocumentsProtocol, AgentDocumentsNeeds>({
  address: agentDocuments,
  asks: {},
  mailbox: { capacity: 4096, inflightMax: 256 },
  lane: { changeAgentProfile: ({ caller }) => caller.principal.clientId },
  // The actor has no state that a restart would repair.
  supervision: { onFailure: 'resume' },
  create: ({ database, clock, random, sealer, issuer }) => ({
    signatureDirectory: directoryOf({ database, clock, sealer }, new URL(issuer).host),
    async agentDocument({ agentId, name }, context) {
      if (!isUuid(agentId)) return UNKNOWN_AGENT
      // The documents are public, and the agent may be of any tenant.
      const agent = await database.system(
        (tx) => findAgentProfile<AgentProfile>(tx, agentId),
        context,
      )
      if (agent === undefined) return UNKNOWN_AGENT
      const key = name === 'jwks' ? await sealedSignatureKey({ database }, agentId) : undefined
      const signing = key === undefined ? [] : [{ ...signatureJwk(key), alg: 'EdDSA' }]
      const documents = {
        client: () => agentClientDocument(issuer, agent),
        jwks: () => ({ keys: [...agentKeySet(agent).keys, ...signing] }),
        'agent-card': () => agentCard(issuer, agent),
      }
      return { tag: 'published', body: Buffer.from(JSON.stringify(documents[name]())) }
    },

    async changeAgentProfile({ caller, change }, context) {
      const agentId = caller.principal.clientId
      // The agent may work with a token of a tenant that is not its home.
      return database.system(async (tx) => {
        if (!(await holdAgent(tx, agentId))) return UNKNOWN_AGENT
        const agent = await findAgentProfile<AgentProfile>(tx, agentId)
        if (agent === undefined) return UNKNOWN_AGENT
        const profile = changed(agent.profile, change)
        const invalid = faultOf(profile, agentClientDocument(issuer, { ...agent, profile }))
        if (invalid !== undefined) return invalid
        await replaceAgentProfile(tx, agentId, profile, clock.now())
        recordAudit(tx, { clock, random }, caller, context, {
          type: 'admin.agent.updated',
          tenantId: agent.tenantId,
          resource: { type: 'agent', id: agentId },
          data: { profile, profile_before: agent.profile },
        })
        const clientId = agentDocumentUrl(issuer, agentId, 'client')
        return { tag: 'found', agentId, clientId, profile }
      })
    },
  }),
})

function changed(before: AgentProfile, change: AgentProfileChange): AgentProfile {
  const stated = Object.entries(change).filter(([, value]) => value !== undefined)
  const after = Object.entries({ ...before, ...Object.fromEntries(stated) })
  return Object.fromEntries(after.filter(([, value]) => value !== null))
}

function faultOf(profile: AgentProfile, document: unknown): ProfileInvalid | undefined {
  for (const [index, uri] of (profile.redirect_uris ?? []).entries()) {
    const fault = redirectUriFault(uri)
    if (fault !== undefined)
      return { tag: 'invalid', pointer: `/redirect_uris/${index}`, detail: `The URI ${fault}.` }
  }
  const { client_uri: uri } = profile
  if (uri !== undefined && httpsUrl(uri, PAGE) === null)
    return { tag: 'invalid', pointer: '/client_uri', detail: 'Must be an https URL.' }
  return Buffer.byteLength(JSON.stringify(document)) <= CLIENT_DOCUMENT_BYTES_MAX
    ? undefined
    : {
        tag: 'invalid',
        pointer: '/redirect_uris',
        detail: `The client metadata document would be longer than ${CLIENT_DOCUMENT_BYTES_MAX} bytes.`,
      }
}
