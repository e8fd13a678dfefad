// An OpenID provider on loopback: node authorization_server.mjs PACKAGE PORT RESOURCE SECONDS
// It takes any user with any password, registers clients, and gives JWTs for one resource.
import { pathToFileURL } from 'node:url';

// The runtime of older nodes lacks it, and client metadata documents need it.
URL.parse ??= (address) => { try { return new URL(address); } catch { return null; } };
const [folder, port, resource, seconds] = process.argv.slice(2);
const { Provider } = await import(pathToFileURL(`${folder}/lib/index.js`).href);
const issuer = `http://127.0.0.1:${port}`;
const documents = process.env.CLIENT_DOCUMENTS === '1';

const provider = new Provider(issuer, {
  scopes: ['openid', 'offline_access', 'notes'],
  clientBasedCORS: () => false,
  // Its own guard keeps it from everything on loopback.
  fetch: (address, { dispatcher, ...options }) => globalThis.fetch(address, options),
  pkce: { required: () => true },
  issueRefreshToken: async () => true,
  rotateRefreshToken: true,
  findAccount: (_context, id) => ({ accountId: id, claims: async () => ({ sub: id }) }),
  cookies: { keys: ['of a test'] },
  features: {
    devInteractions: { enabled: true },
    registration: { enabled: !documents },
    clientIdMetadataDocument: { enabled: documents, ack: process.env.DOCUMENTS_ACK },
    resourceIndicators: {
      enabled: true,
      defaultResource: () => resource,
      useGrantedResource: () => true,
      getResourceServerInfo: () => ({
        scope: 'notes',
        audience: resource,
        accessTokenFormat: 'jwt',
        accessTokenTTL: Number(seconds),
        jwt: { sign: { alg: 'RS256' } },
      }),
    },
  },
});
provider.listen(Number(port), '127.0.0.1', () => console.log(`ready ${issuer}`));
