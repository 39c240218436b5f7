/** The documents that agents publish as clients of other services (docs/guides/agents/agent-documents.md). */
import { address, type Ask } from '../../../../runtime/kernel/protocol.js'
import type { AgentProfile } from '../../../domain/agents/documents.js'
import type { Caller } from '../../../domain/audit.js'
import type { MemberInvalid } from '../../../domain/entities/messages.js'

export type AgentDocumentsProtocol = {
  /** Anonymous. Unknown, suspended and deleted agents have no documents. */
  agentDocument: Ask<
    { readonly agentId: string; readonly name: AgentDocumentName },
    { readonly tag: 'published'; readonly body: Uint8Array } | { readonly tag: 'unknown_agent' }
  >
  /** Anonymous: the keys with which an agent, or the newest agents, sign requests. */
  signatureDirectory: Ask<
    { readonly agentId: string | null },
    SignatureDirectory | { readonly tag: 'unknown_agent' }
  >
  /** Absent members of the change stay unchanged. */
  changeAgentProfile: Ask<
    { readonly caller: Caller; readonly change: AgentProfileChange },
    ProfileFound | ProfileInvalid | { readonly tag: 'unknown_agent' }
  >
}

export type SignatureDirectory = {
  readonly tag: 'directory'
  readonly body: Uint8Array
  /** Its digest, and a signature of each key. */
  readonly headers: Readonly<Record<string, string>>
}

export type AgentDocumentName = 'client' | 'jwks' | 'agent-card'
export type AgentProfileChange = {
  readonly [K in keyof AgentProfile]?: AgentProfile[K] | null | undefined
}
export type ProfileFound = {
  readonly tag: 'found'
  readonly agentId: string
  /** The URL of the metadata document. */
  readonly clientId: string
  readonly profile: AgentProfile
}
export type ProfileInvalid = MemberInvalid

export const agentDocuments = address<AgentDocumentsProtocol>('agent-documents', {
  idempotent: ['agentDocument', 'signatureDirectory'],
})
