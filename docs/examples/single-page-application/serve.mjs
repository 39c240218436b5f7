/**
 * Serves the files of the application.
 *
 *     ISSUER=http://localhost:8080 CLIENT_ID=... PORT=3000 node serve.mjs
 */
import { readFile } from 'node:fs/promises'
import { createServer } from 'node:http'

const { ISSUER, CLIENT_ID, PORT = '3000' } = process.env
const PAGE = 'text/html; charset=utf-8'
const FILES = {
  '/': ['index.html', PAGE],
  '/callback': ['index.html', PAGE],
  '/app.js': ['app.js', 'text/javascript; charset=utf-8'],
}
const policy = `default-src 'none'; script-src 'self'; connect-src 'self' ${ISSUER}; base-uri 'none'`

createServer(async (request, response) => {
  const { pathname } = new URL(request.url, 'http://localhost')
  if (pathname === '/config.json') {
    response.writeHead(200, { 'content-type': 'application/json' })
    return response.end(JSON.stringify({ issuer: ISSUER, clientId: CLIENT_ID }))
  }
  const [name, type] = FILES[pathname] ?? []
  if (name === undefined) return response.writeHead(404).end()
  const body = await readFile(new URL(name, import.meta.url))
  response.writeHead(200, { 'content-type': type, 'content-security-policy': policy }).end(body)
}).listen(Number(PORT), '127.0.0.1', () => console.log(`ready: http://localhost:${PORT}`))
