import java.nio.file.Path;
import org.neo4j.configuration.connectors.BoltConnector;
import org.neo4j.configuration.connectors.HttpConnector;
import org.neo4j.configuration.GraphDatabaseSettings;
import org.neo4j.configuration.helpers.SocketAddress;
import org.neo4j.dbms.api.DatabaseManagementService;
import org.neo4j.dbms.api.DatabaseManagementServiceBuilder;

/** Serves a Neo4j database in a folder on a port of the loopback, until standard input ends. */
public final class Launcher {
    public static void main(String[] arguments) throws Exception {
        Path folder = Path.of(arguments[0]);
        int port = Integer.parseInt(arguments[1]);
        DatabaseManagementService service = new DatabaseManagementServiceBuilder(folder)
                .setConfig(BoltConnector.enabled, true)
                .setConfig(BoltConnector.listen_address, new SocketAddress("127.0.0.1", port))
                .setConfig(BoltConnector.advertised_address, new SocketAddress("127.0.0.1", port))
                .setConfig(HttpConnector.enabled, false)
                .setConfig(GraphDatabaseSettings.pagecache_memory, 64L * 1024 * 1024)
                .build();
        System.out.println("ready");
        System.out.flush();
        while (System.in.read() >= 0) {
            // Whoever started this server holds the other end: when it is gone, so are we.
        }
        service.shutdown();
    }
}
