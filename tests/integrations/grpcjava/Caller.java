import io.grpc.CallOptions;
import io.grpc.ClientCall;
import io.grpc.Grpc;
import io.grpc.ManagedChannel;
import io.grpc.Metadata;
import io.grpc.MethodDescriptor;
import io.grpc.Status;
import io.grpc.TlsChannelCredentials;
import java.io.BufferedReader;
import java.io.ByteArrayInputStream;
import java.io.File;
import java.io.IOException;
import java.io.InputStream;
import java.io.InputStreamReader;
import java.io.UncheckedIOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.HexFormat;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.TimeUnit;

/**
 * Calls of grpc-java on one channel to ADDRESS, whose authority is in the file AUTHORITY.
 *
 * <p>A line of stdin is a call: method, key, milliseconds, and the file of its message. A call
 * without a file (-) sends none; without milliseconds as well (0) it is cancelled. A line of stdout
 * is its end: status, details, and the response in hexadecimal digits, with tabs between.
 */
public final class Caller {
  private static final Metadata.Key<String> KEY =
      Metadata.Key.of("x-api-key", Metadata.ASCII_STRING_MARSHALLER);

  private static final class Bytes implements MethodDescriptor.Marshaller<byte[]> {
    @Override
    public InputStream stream(byte[] bytes) {
      return new ByteArrayInputStream(bytes);
    }

    @Override
    public byte[] parse(InputStream stream) {
      try {
        return stream.readAllBytes();
      } catch (IOException error) {
        throw new UncheckedIOException(error);
      }
    }
  }

  private static final class End extends ClientCall.Listener<byte[]> {
    private final CompletableFuture<String> line = new CompletableFuture<>();
    private byte[] response = {};

    @Override
    public void onMessage(byte[] message) {
      response = message;
    }

    @Override
    public void onClose(Status status, Metadata trailers) {
      String hex = HexFormat.of().formatHex(response);
      line.complete(status.getCode() + "\t" + status.getDescription() + "\t" + hex);
    }
  }

  private static String end(ManagedChannel channel, String[] words) throws Exception {
    MethodDescriptor<byte[], byte[]> method =
        MethodDescriptor.<byte[], byte[]>newBuilder()
            .setType(MethodDescriptor.MethodType.UNARY)
            .setFullMethodName(words[0])
            .setRequestMarshaller(new Bytes())
            .setResponseMarshaller(new Bytes())
            .build();
    Metadata head = new Metadata();
    head.put(KEY, words[1]);
    long milliseconds = Long.parseLong(words[2]);
    CallOptions options = CallOptions.DEFAULT;
    if (milliseconds > 0) {
      options = options.withDeadlineAfter(milliseconds, TimeUnit.MILLISECONDS);
    }
    ClientCall<byte[], byte[]> call = channel.newCall(method, options);
    End end = new End();
    call.start(end, head);
    call.request(2);
    if (!words[3].equals("-")) {
      call.sendMessage(Files.readAllBytes(Path.of(words[3])));
      call.halfClose();
    } else if (milliseconds == 0) {
      call.cancel("by the test", null);
    }
    return end.line.get();
  }

  public static void main(String[] arguments) throws Exception {
    var credentials = TlsChannelCredentials.newBuilder().trustManager(new File(arguments[1]));
    ManagedChannel channel = Grpc.newChannelBuilder(arguments[0], credentials.build()).build();
    var lines = new BufferedReader(new InputStreamReader(System.in));
    for (String line = lines.readLine(); line != null; line = lines.readLine()) {
      System.out.println(end(channel, line.split(" ")));
    }
    channel.shutdownNow();
  }
}
