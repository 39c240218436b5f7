/** MCP servers whose tools agents call through the gateway (docs/guides/vault/mcp-gateway.md). */
import { address } from '../../../../runtime/kernel/protocol.js'
import type { McpServerMembers } from '../../../domain/entities/mcp-server.js'
import type { EntityProtocol } from '../../../domain/entities/messages.js'
import type { Denied } from '../../../domain/vault/denied.js'
import type { DirectTokenNeeded } from '../protocol.js'

/** The caller may not grant the credential of the server. */
export type ServerRefused = Denied | DirectTokenNeeded
export type McpServersProtocol = EntityProtocol<McpServerMembers, ServerRefused>

export const mcpServers = address<McpServersProtocol>('mcp_servers', {
  idempotent: ['list', 'read'],
})
