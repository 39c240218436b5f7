/**
 * The file for Envoy says what the files of the other proxies say, which long tests run. No registry that the project uses
 * has a build of Envoy, so this file is read and not run.
 */
import { readFileSync } from 'node:fs'
import test from 'ava'
import { parse } from 'yaml'

const read = (name: string) =>
  readFileSync(new URL(`../../../deploy/proxies/${name}`, import.meta.url), 'utf8')

type Tree = { readonly [key: string]: Tree } & readonly Tree[]
const { static_resources: own } = parse(read('envoy.yaml')) as Tree
const chain = own!['listeners']![0]!['filter_chains']![0]!
const manager = chain['filters']![0]!['typed_config']!
const cluster = own!['clusters']![0]!
const plain = (tree: Tree | undefined) => tree as unknown
const [nginx, haproxy] = [read('nginx.conf'), read('haproxy.cfg')]
const found = (text: string, pattern: RegExp): string => pattern.exec(text)![1]!

test('it offers HTTP/2 and HTTP/1.1 to clients, at the port and with the certificate of the others', (t) => {
  const { common_tls_context: tls } = chain['transport_socket']!['typed_config']!
  t.deepEqual(plain(tls!['alpn_protocols']), ['h2', 'http/1.1'])
  t.deepEqual(plain(tls!['tls_certificates']), [
    {
      certificate_chain: { filename: '/etc/envoy/id.example.com.pem' },
      private_key: { filename: '/etc/envoy/id.example.com.key' },
    },
  ])
  const { port_value } = own!['listeners']![0]!['address']!['socket_address']!
  t.is(String(plain(port_value)), found(nginx, /listen (\d+) ssl http2/))
})

test('it encrypts HTTP/1.1 to the service again, and verifies its certificate and name', (t) => {
  const { address, port_value } =
    cluster['load_assignment']!['endpoints']![0]!['lb_endpoints']![0]!['endpoint']!['address']![
      'socket_address'
    ]!
  const upstream = `${plain(address)}:${plain(port_value)}`
  t.is(upstream, found(nginx, /server (127\S+);/))
  t.is(upstream, found(haproxy, /server svc1 (\S+) ssl verify required/))
  const socket = cluster['transport_socket']!['typed_config']!
  t.regex(String(plain(socket['@type'])), /UpstreamTlsContext$/)
  const name = found(nginx, /proxy_ssl_name (\S+);/)
  t.is(plain(socket['sni']), name)
  const { validation_context: validation } = socket['common_tls_context']!
  t.deepEqual(plain(validation), {
    trusted_ca: { filename: '/etc/envoy/svc-ca.pem' },
    match_typed_subject_alt_names: [{ san_type: 'DNS', matcher: { exact: name } }],
  })
  const [protocol] = Object.values(cluster['typed_extension_protocol_options']!)
  t.deepEqual(plain(protocol!['explicit_http_config']), { http_protocol_options: {} })
})

test('it has the time limits of the others', (t) => {
  const [protocol] = Object.values(cluster['typed_extension_protocol_options']!)
  t.is(
    plain(protocol!['common_http_protocol_options']!['idle_timeout']),
    found(nginx, /keepalive_timeout (\d+s);/),
  )
  t.is(plain(manager['stream_idle_timeout']), found(nginx, /proxy_read_timeout (\d+s);/))
  t.is(plain(manager['request_headers_timeout']), found(haproxy, /timeout http-request (\d+s)/))
  t.is(plain(cluster['connect_timeout']), found(haproxy, /timeout connect (\d+s)/))
})

test('the service learns the client, and Envoy adds nothing and repeats nothing', (t) => {
  const host = manager['route_config']!['virtual_hosts']![0]!
  t.deepEqual(
    Object.fromEntries(
      host['request_headers_to_add']!.map(({ header, append_action }) => [
        plain(header!['key']),
        [plain(header!['value']), plain(append_action)],
      ]),
    ),
    {
      'x-forwarded-for': [
        '%DOWNSTREAM_DIRECT_REMOTE_ADDRESS_WITHOUT_PORT%',
        'OVERWRITE_IF_EXISTS_OR_ADD',
      ],
      'x-forwarded-proto': ['https', 'OVERWRITE_IF_EXISTS_OR_ADD'],
    },
  )
  t.deepEqual(plain(host['routes']), [
    { match: { prefix: '/' }, route: { cluster: 'svc', timeout: '0s' } },
  ])
  t.is(plain(manager['server_header_transformation']), 'PASS_THROUGH')
  t.is(plain(manager['generate_request_id']), false)
  const [check] = cluster['health_checks']!
  t.deepEqual(plain(check!['http_health_check']), {
    host: found(haproxy, /hdr Host (\S+)/),
    path: found(haproxy, /send meth GET uri (\S+) ver HTTP\/1\.1/),
    codec_client_type: 'HTTP1',
  })
})
