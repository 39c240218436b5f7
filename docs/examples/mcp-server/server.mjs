/**
 * An MCP server with two tools, protected by svc. Each person has their own notes: `list_notes` needs the scope
 * `notes:read`, `add_note` needs `notes:write`.
 *
 *     ISSUER=http://localhost:8080 RESOURCE=http://127.0.0.1:3001/mcp node docs/examples/mcp-server/server.mjs
 */
import { createServer } from 'node:http'
import { McpServer } from '@modelcontextprotocol/sdk/server/mcp.js'
import { StreamableHTTPServerTransport } from '@modelcontextprotocol/sdk/server/streamableHttp.js'
import { createResourceServer } from 'svc/resource-server'
import { z } from 'zod'

const { ISSUER, RESOURCE = 'http://127.0.0.1:3001/mcp' } = process.env
const here = new URL(RESOURCE)
const BODY_BYTES_MAX = 1024 * 1024

const resourceServer = createResourceServer({
  issuer: ISSUER,
  resource: RESOURCE,
  name: 'Notes',
  // What a client asks for at first. It asks for more when a tool needs more.
  scopes: ['notes:read'],
  implied: { 'notes:write': ['notes:read'] },
  corsOrigins: '*',
})

// A challenge names all scopes of a tool. Clients of older SDKs ask for these alone, so the list repeats what they need
// for the other tools.
const SCOPES_OF_TOOLS = { list_notes: ['notes:read'], add_note: ['notes:read', 'notes:write'] }

/** The scopes of a message. A tool that is not listed needs a scope that no token has. */
function scopesOf(message) {
  if (message?.method !== 'tools/call') return ['notes:read']
  const tool = message.params?.name
  return Object.hasOwn(SCOPES_OF_TOOLS, tool) ? SCOPES_OF_TOOLS[tool] : ['notes:none']
}

/** By tenant and subject: the key of a person is never the email address. */
const notes = new Map()

/** The tools as one caller sees them. They get the claims of the token, never the token. */
function mcpServerFor({ tenantId, subject }) {
  const key = JSON.stringify([tenantId, subject])
  const own = notes.get(key) ?? []
  const text = (words) => ({ content: [{ type: 'text', text: words }] })
  const server = new McpServer({ name: 'notes', version: '1.0.0' })
  server.registerTool('list_notes', { description: 'Lists your notes' }, () =>
    text(own.length === 0 ? 'You have no notes.' : own.join('\n')),
  )
  const inputSchema = { note: z.string().min(1).max(1000) }
  server.registerTool('add_note', { description: 'Adds a note', inputSchema }, ({ note }) => {
    notes.set(key, [...own, note].slice(-100))
    return text('The note was added.')
  })
  return server
}

async function readJson(request) {
  const chunks = []
  let length = 0
  for await (const chunk of request) {
    length += chunk.length
    if (length > BODY_BYTES_MAX) return undefined
    chunks.push(chunk)
  }
  try {
    return JSON.parse(Buffer.concat(chunks).toString('utf8'))
  } catch {
    return undefined
  }
}

async function answer(request, response) {
  // The metadata of the resource (RFC 9728) and CORS preflights.
  if (resourceServer.handleNode(request, response)) return
  if (request.url.split('?')[0] !== here.pathname) return response.writeHead(404).end()
  const caller = await resourceServer.authenticate(request)
  if (caller.tag === 'refused') return resourceServer.sendRefusal(response, caller)
  for (const [name, value] of Object.entries(resourceServer.corsHeaders(request)))
    response.setHeader(name, value)
  // This server keeps no sessions, so there is nothing to stream or to delete.
  if (request.method !== 'POST') return response.writeHead(405, { allow: 'POST' }).end()
  const message = await readJson(request)
  if (message === undefined || Array.isArray(message)) return response.writeHead(400).end()
  const refusal = resourceServer.requireScopes(request, caller.token, scopesOf(message))
  if (refusal !== null) return resourceServer.sendRefusal(response, refusal)
  const transport = new StreamableHTTPServerTransport({ sessionIdGenerator: undefined })
  response.on('close', () => void transport.close())
  await mcpServerFor(caller.token).connect(transport)
  await transport.handleRequest(request, response, message)
}

createServer((request, response) => {
  answer(request, response).catch(() => {
    if (!response.headersSent) response.writeHead(500)
    response.end()
  })
}).listen(Number(here.port || 80), here.hostname, () => {
  process.stdout.write(`listening at ${RESOURCE}\n`)
})
